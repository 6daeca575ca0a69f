"""More sequence models and attention variants, of published designs."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, integers, network, normal


@network("lstm-state-attributes")
def attributes() -> Case:
    class Stored(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.h0, self.c0 = torch.randn(1, 2, 4), torch.randn(1, 2, 4)
            self.lstm = nn.LSTM(3, 4, 1, batch_first=True, dropout=0.0)
            self.fc = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            self.h0 = self.h0.to(x.device)
            self.c0 = self.c0.to(x.device)
            out, state = self.lstm(x, (self.h0, self.c0))
            return self.fc(out[:, -1, :]) + state[0].sum()

    return Stored(), (normal(2, 3, 3),)


@network("vanilla-rnn-hidden")
def hidden() -> Case:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden = torch.randn(2, 4)
            self.i2h, self.h2o = nn.Linear(7, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor, h0: Tensor) -> Tensor:
            length = x.size(0)
            hidden = h0.to(x.device)
            outputs = []
            for t in range(length):
                hidden = torch.tanh(self.i2h(torch.cat((x[t], hidden), dim=1)))
                outputs.append(self.h2o(hidden))
            return torch.stack(outputs, dim=0)

    return Hidden(), (normal(3, 2, 3), normal(2, 4))


@network("conv-lstm-cell")
def conv_lstm() -> Case:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)

        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
            i, f, o, g = torch.split(self.conv(torch.cat([x, h], dim=1)), 2, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    return Cell(), (normal(1, 1, 3, 3), normal(1, 2, 3, 3), normal(1, 2, 3, 3))


@network("t5-relative-bias")
def relative() -> Case:
    class Bias(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(8, 2)

        @staticmethod
        def bucket(gap: Tensor, buckets: int = 8, most: int = 16) -> Tensor:
            buckets //= 2
            found = (gap > 0).to(torch.long) * buckets
            gap = gap.abs()
            exact = buckets // 2
            large = exact + (
                torch.log(gap.float() / exact) / math.log(most / exact) * (buckets - exact)
            ).to(torch.long)
            large = torch.min(large, torch.full_like(large, buckets - 1))
            return found + torch.where(gap < exact, gap, large)

        def forward(self, q: Tensor, k: Tensor) -> Tensor:
            i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])[None]
            bias = self.table(self.bucket(j - i)).permute(2, 0, 1).unsqueeze(0)
            return ((q @ k.transpose(-1, -2)) + bias).softmax(-1)

    return Bias(), (normal(1, 2, 6, 3), normal(1, 2, 6, 3))


@network("transformer-xl-shift")
def shifted() -> Case:
    class Shifted(nn.Module):
        def forward(self, q: Tensor, positions: Tensor) -> Tensor:
            scores = q @ positions.T
            b, h, t, n = scores.shape
            padded = torch.cat([scores.new_zeros(b, h, t, 1), scores], dim=-1)
            return padded.view(b, h, n + 1, t)[:, :, 1:].view_as(scores).tril(1)

    return Shifted(), (normal(1, 2, 4, 3), normal(4, 3))


@network("soft-capped-attention")
def capped() -> Case:
    class Capped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q_norm, self.k_norm = nn.RMSNorm(3), nn.RMSNorm(3, eps=1e-6)
            self.sinks = nn.Parameter(torch.randn(2))

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            scores = self.q_norm(q) @ self.k_norm(k).transpose(-1, -2)
            scores = 20.0 * torch.tanh(scores / 20.0)
            t = q.shape[-2]
            scores = scores + torch.triu(torch.full((t, t), float("-inf")), 1)
            sinks = self.sinks.reshape(1, -1, 1, 1).expand(q.shape[0], -1, t, 1)
            weights = torch.softmax(torch.cat([scores, sinks], -1), -1)[..., :-1]
            return weights @ v

    return Capped(), (normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(1, 2, 4, 3))


@network("latent-attention")
def latent() -> Case:
    class Latent(nn.Module):
        """Multi-head latent attention: keys and values from a narrow code."""

        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(6, 2 * 5, bias=False)
            self.down = nn.Linear(6, 3 + 2, bias=False)
            self.norm = nn.RMSNorm(3, eps=1e-6)
            self.up = nn.Linear(3, 2 * 6, bias=False)
            self.out = nn.Linear(6, 6, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            b, t, _ = x.shape
            q, rotary = self.q(x).view(b, t, 2, 5).split([3, 2], dim=-1)
            code, shared = self.down(x).split([3, 2], dim=-1)
            k, v = self.up(self.norm(code)).view(b, t, 2, 6).split([3, 3], dim=-1)
            scores = torch.einsum("bshd,bthd->bsht", q, k)
            scores = (scores + torch.einsum("bshr,btr->bsht", rotary, shared)) * 5**-0.5
            mask = torch.full((t, t), float("-inf")).triu_(1)
            weights = (scores + mask.unsqueeze(1)).softmax(dim=-1, dtype=torch.float32)
            return self.out(torch.einsum("bsht,bthd->bshd", weights.type_as(x), v).flatten(2))

    return Latent(), (normal(1, 4, 6),)


@network("chunked-attention-online-softmax")
def chunked() -> Case:
    class Chunked(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            top = torch.full((*q.shape[:-1], 1), float("-inf"))
            total, out = torch.zeros_like(top), torch.zeros_like(q)
            for keys, values in zip(k.split(2, -2), v.split(2, -2), strict=True):
                scores = q @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1])
                new = torch.maximum(top, scores.amax(-1, keepdim=True))
                weights, old = torch.exp(scores - new), torch.exp(top - new)
                total = total * old + weights.sum(-1, keepdim=True)
                out = out * old + weights @ values
                top = new
            return out / total

    return Chunked(), (normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(1, 2, 4, 3))


@network("nystrom-attention")
def nystrom() -> Case:
    class Nystrom(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            ql = q.reshape(1, 2, 2, 2, 3).mean(dim=-2)
            kl = k.reshape(1, 2, 2, 2, 3).mean(dim=-2)
            a = torch.softmax(q @ kl.transpose(-1, -2), -1)
            m = torch.softmax(ql @ kl.transpose(-1, -2), -1)
            c = torch.softmax(ql @ k.transpose(-1, -2), -1)
            eye = torch.eye(2)
            z = m.transpose(-1, -2) / m.sum(-2).max() / m.sum(-1).max()
            for _ in range(3):
                mz = m @ z
                z = 0.25 * z @ (13 * eye - mz @ (15 * eye - mz @ (7 * eye - mz)))
            return a @ z @ (c @ v)

    return Nystrom(), (normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(1, 2, 4, 3))


@network("performer-features")
def performer() -> Case:
    class Performer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("projection", torch.randn(5, 3))

        def features(self, x: Tensor, query: bool) -> Tensor:
            x = x * x.shape[-1] ** -0.25
            y = torch.einsum("bhnd,md->bhnm", x, self.projection)
            half = (x**2).sum(-1, keepdim=True) / 2
            top = y.amax(dim=-1, keepdim=True) if query else y.amax(dim=(-1, -2), keepdim=True)
            return 5**-0.5 * (torch.exp(y - half - top.detach()) + 1e-4)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k = self.features(q, True), self.features(k, False)
            norm = 1.0 / torch.einsum("bhnm,bhm->bhn", q, k.sum(-2))
            context = torch.einsum("bhnm,bhnd->bhmd", k, v)
            return torch.einsum("bhmd,bhnm,bhn->bhnd", context, q, norm)

    return Performer(), (normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(1, 2, 4, 3))


@network("conformer-convolution")
def conformer() -> Case:
    class Convolution(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4)
            self.first, self.last = nn.Conv1d(4, 8, 1), nn.Conv1d(4, 4, 1)
            self.depthwise = nn.Conv1d(4, 4, 3, padding="same", groups=4)
            self.batch = nn.BatchNorm1d(4)

        def forward(self, x: Tensor) -> Tensor:
            y = functional.glu(self.first(self.norm(x).transpose(1, 2)), dim=1)
            y = functional.silu(self.batch(self.depthwise(y)))
            return x + self.last(y).transpose(1, 2)

    return Convolution(), (normal(2, 5, 4),)


@network("crf-forward")
def crf() -> Case:
    class Crf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.moves = nn.Parameter(torch.randn(3, 3))
            self.start = nn.Parameter(torch.randn(3))

        def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
            alpha = self.start + emissions[0]
            picked = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
            score = self.start[tags[0]] + picked[0]
            for t in range(1, emissions.shape[0]):
                moved = torch.logsumexp(
                    alpha.unsqueeze(2) + self.moves + emissions[t].unsqueeze(1), dim=1
                )
                alpha = torch.where(mask[t].unsqueeze(1), moved, alpha)
                step = self.moves[tags[t - 1], tags[t]] + picked[t]
                score = score + step * mask[t]
            return (torch.logsumexp(alpha, dim=1) - score).mean()

    mask = torch.tensor([[True, True], [True, True], [True, False]])
    return Crf(), (normal(3, 2, 3), integers(3, 3, 2), mask)


@network("viterbi")
def viterbi() -> Case:
    class Viterbi(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.moves = nn.Parameter(torch.randn(3, 3))

        def forward(self, emissions: Tensor) -> tuple[Tensor, Tensor]:
            score, back = emissions[0], []
            for t in range(1, emissions.shape[0]):
                best, at = (score.unsqueeze(-1) + self.moves).max(dim=1)
                score = best + emissions[t]
                back.append(at)
            last = score.argmax(1)
            path = [last]
            for at in reversed(back):
                path.append(at.gather(1, path[-1].unsqueeze(1)).squeeze(1))
            return score.amax(1), torch.stack(path[::-1])

    return Viterbi(), (normal(3, 2, 3),)


@network("turing-machine-addressing")
def addressing() -> Case:
    class Addressing(nn.Module):
        def forward(self, memory: Tensor, key: Tensor, shift: Tensor, gate: Tensor) -> Tensor:
            w = functional.softmax(
                5 * functional.cosine_similarity(memory + 1e-16, key.unsqueeze(1), dim=-1), dim=1
            )
            w = torch.sigmoid(gate) * w
            s = functional.softmax(shift, dim=1)
            turned = torch.cat([w[:, -1:], w, w[:, :1]], 1)
            rows = [
                functional.conv1d(t.view(1, 1, -1), k.view(1, 1, -1)).view(-1)
                for t, k in zip(turned, s, strict=True)
            ]
            w = torch.stack(rows) ** 2
            w = w / (w.sum(1, keepdim=True) + 1e-16)
            return torch.einsum("bn,bnm->bm", w, memory)

    return Addressing(), (normal(2, 4, 3), normal(2, 3), normal(2, 3), normal(2, 1))


@network("slstm")
def slstm() -> Case:
    class Slstm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.r = nn.Linear(3, 16), nn.Linear(4, 16, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            h = c = n = m = x.new_zeros(x.shape[0], 4)
            outs = []
            for step in x.unbind(1):
                i, f, z, o = (self.w(step) + self.r(h)).chunk(4, -1)
                log_f = functional.logsigmoid(f)
                new = torch.maximum(log_f + m, i)
                i, f = torch.exp(i - new), torch.exp(log_f + m - new)
                c = f * c + i * torch.tanh(z)
                n, m = f * n + i, new
                h = torch.sigmoid(o) * c / n.clamp(min=1.0)
                outs.append(h)
            return torch.stack(outs, 1)

    return Slstm(), (normal(2, 3, 3),)


@network("gated-linear-recurrence")
def recurrence() -> Case:
    class Recurrence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input, self.gate = nn.Linear(3, 3), nn.Linear(3, 3)
            self.decay = nn.Parameter(torch.rand(3) + 1)

        def forward(self, x: Tensor) -> Tensor:
            log_a = -8 * functional.softplus(self.decay) * torch.sigmoid(self.gate(x))
            a = log_a.exp()
            u = torch.sqrt(1 - torch.exp(2 * log_a)) * (torch.sigmoid(self.input(x)) * x)
            total = torch.cumsum(log_a, 1)
            gaps = total[:, :, None] - total[:, None]
            t = x.shape[1]
            causal = torch.ones(t, t, dtype=torch.bool).tril()[None, :, :, None]
            weights = torch.where(causal, gaps, -torch.inf).exp()
            return torch.einsum("btsd,bsd->btd", weights, u) + 0 * a

    return Recurrence(), (normal(2, 4, 3),)


@network("delta-rule")
def delta() -> Case:
    class Delta(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.beta = nn.Linear(4, 12, bias=False), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = functional.silu(self.qkv(x)).chunk(3, -1)
            q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
            beta = torch.sigmoid(self.beta(x))
            state = x.new_zeros(x.shape[0], 4, 4)
            outs = []
            for t in range(x.shape[1]):
                error = v[:, t] - torch.einsum("bij,bj->bi", state, k[:, t])
                state = state + beta[:, t, :, None] * error[:, :, None] * k[:, t, None, :]
                outs.append(torch.einsum("bij,bj->bi", state, q[:, t]))
            return torch.stack(outs, dim=1)

    return Delta(), (normal(1, 3, 4),)


@network("encoder-with-mask")
def encoder_mask() -> Case:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

        def forward(self, x: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.encoder(x, mask=mask)

    return Masked(), (normal(2, 3, 4),)


@network("stft-by-convolution")
def stft() -> Case:
    class Stft(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            n = torch.arange(4.0)
            angle = 2 * math.pi * n[:, None] * n[None] / 4
            window = torch.hann_window(4)
            basis = torch.cat([angle.cos()[:3], -angle.sin()[:3]]) * window
            self.register_buffer("basis", basis.unsqueeze(1))
            self.register_buffer("mel", torch.rand(2, 3))

        def forward(self, x: Tensor) -> Tensor:
            x = functional.pad(x.unsqueeze(1), (2, 2), mode="reflect")
            real, imaginary = functional.conv1d(x, self.basis, stride=2).chunk(2, 1)
            power = real.square() + imaginary.square()
            return torch.log10(torch.clamp(self.mel @ power, min=1e-10))

    return Stft(), (normal(2, 10),)
