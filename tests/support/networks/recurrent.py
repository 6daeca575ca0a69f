"""Recurrent networks and state-space models."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, network, normal


class VanillaRnn(nn.Module):
    def __init__(self, i: int, h: int, o: int) -> None:
        super().__init__()
        self.hidden = torch.randn(2, h)
        self.i2h = nn.Linear(i + h, h)
        self.h2o = nn.Linear(h, o)

    def forward(self, x: Tensor, initial: Tensor | None = None) -> Tensor:
        if initial is not None:
            self.hidden.copy_(initial)
        self.hidden = torch.tanh(self.i2h(torch.cat((x, self.hidden.to(x.dtype)), dim=1)))
        return self.h2o(self.hidden)


@network("vanilla-rnn-state-attribute")
def rnn_attribute() -> Case:
    return VanillaRnn(3, 4, 2), (normal(2, 3),)


@network("vanilla-rnn-sequence")
def rnn_sequence() -> Case:
    class Sequence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.i2h = nn.Linear(7, 4)
            self.h2o = nn.Linear(4, 2)

        def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
            outs = []
            for t in range(x.size(0)):
                hidden = torch.tanh(self.i2h(torch.cat((x[t], hidden), dim=1)))
                outs.append(self.h2o(hidden))
            return torch.stack(outs, dim=0)

    return Sequence(), (normal(4, 2, 3), normal(2, 4))


class Recurrent(nn.Module):
    def __init__(self, inner: nn.Module, states: int, last: bool = False) -> None:
        super().__init__()
        self.inner, self.states, self.last = inner, states, last

    def forward(self, x: Tensor, *given: Tensor) -> object:
        state = None if not given else given[0] if self.states == 1 else tuple(given)
        out, state = self.inner(x, state)
        return out[:, -1] if self.last else (out, state)


@network("lstm")
def lstm() -> Case:
    return Recurrent(nn.LSTM(3, 4, 2, batch_first=True), 2), (
        normal(2, 3, 3),
        normal(2, 2, 4),
        normal(2, 2, 4),
    )


@network("lstm-zero-state")
def lstm_zero() -> Case:
    return Recurrent(nn.LSTM(3, 4, dropout=0.0), 2, last=True), (normal(3, 2, 3),)


@network("lstm-bidirectional")
def lstm_both() -> Case:
    net = nn.LSTM(3, 2, 2, batch_first=True, bidirectional=True)
    return Recurrent(net, 2), (normal(2, 3, 3), normal(4, 2, 2), normal(4, 2, 2))


@network("lstm-projected")
def lstm_projected() -> Case:
    return Recurrent(nn.LSTM(3, 4, proj_size=2), 2), (normal(3, 2, 3),)


@network("lstm-unbatched")
def lstm_unbatched() -> Case:
    return Recurrent(nn.LSTM(3, 4), 2), (normal(3, 3),)


@network("lstm-no-bias")
def lstm_no_bias() -> Case:
    return Recurrent(nn.LSTM(3, 2, bias=False), 2), (normal(2, 1, 3),)


@network("gru")
def gru() -> Case:
    return Recurrent(nn.GRU(3, 4, 2), 1), (normal(3, 2, 3), normal(2, 2, 4))


@network("gru-bidirectional")
def gru_both() -> Case:
    return Recurrent(nn.GRU(3, 2, batch_first=True, bidirectional=True), 1), (normal(2, 3, 3),)


@network("rnn-tanh")
def rnn_tanh() -> Case:
    return Recurrent(nn.RNN(3, 4), 1), (normal(3, 2, 3), normal(1, 2, 4))


@network("rnn-relu")
def rnn_relu() -> Case:
    return Recurrent(nn.RNN(3, 4, nonlinearity="relu", bidirectional=True), 1), (normal(3, 2, 3),)


@network("cells")
def cells() -> Case:
    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTMCell(3, 4)
            self.gru = nn.GRUCell(3, 4)
            self.rnn = nn.RNNCell(3, 4)

        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
            h1, c1 = self.lstm(x, (h, c))
            return h1, c1, self.gru(x, h), self.rnn(x)

    return Cells(), (normal(2, 3), normal(2, 4), normal(2, 4))


@network("lstm-cell-by-hand")
def lstm_cell() -> Case:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.x2h = nn.Linear(3, 16)
            self.h2h = nn.Linear(4, 16)

        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            h, c = state
            i, f, g, o = (self.x2h(x) + self.h2h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    return Cell(), (normal(2, 3), (normal(2, 4), normal(2, 4)))


class Ssd(nn.Module):
    """State-space duality in chunks, as Mamba 2 computes it."""

    def __init__(
        self, length: int, heads: int, size: int, state: int, block: int, last: bool
    ) -> None:
        super().__init__()
        self.block, self.last = block, last
        self.a = nn.Parameter(torch.randn(2, length, heads))
        self.b = nn.Parameter(torch.randn(2, length, heads, state))
        self.c = nn.Parameter(torch.randn(2, length, heads, state))

    @staticmethod
    def segsum(x: Tensor) -> Tensor:
        t = x.size(-1)
        total = torch.cumsum(x, dim=-1)
        segments = total[..., :, None] - total[..., None, :]
        mask = torch.tril(torch.ones(t, t, device=x.device, dtype=bool), diagonal=0)
        return segments.masked_fill(~mask, -torch.inf)

    def forward(self, x: Tensor, initial: Tensor | None = None) -> Tensor:
        x, a, b, c = (
            y.reshape(y.shape[0], -1, self.block, *y.shape[2:]) for y in (x, self.a, self.b, self.c)
        )
        a = a.permute(0, 3, 1, 2)
        total = torch.cumsum(a, dim=-1)
        inner = torch.exp(self.segsum(a))
        diagonal = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, inner, x)
        decay = torch.exp(total[:, :, :, -1:] - total)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, decay, x)
        if initial is None:
            initial = torch.zeros_like(states[:, :1])
        states = torch.cat([initial, states], dim=1)
        chunk = torch.exp(self.segsum(functional.pad(total[:, :, :, -1], (1, 0))))
        new = torch.einsum("bhzc,bchpn->bzhpn", chunk, states)
        if self.last:
            return new[:, -1]
        off = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, new[:, :-1], torch.exp(total))
        return (diagonal + off).flatten(1, 2)


@network("mamba2-ssd")
def ssd() -> Case:
    return Ssd(4, 2, 2, 2, 2, last=False), (normal(2, 4, 2, 2),)


@network("mamba2-last-state")
def ssd_last() -> Case:
    return Ssd(4, 2, 2, 2, 2, last=True), (normal(2, 4, 2, 2),)


class Mamba(nn.Module):
    """A selective scan, step by step."""

    def __init__(self, dim: int, state: int) -> None:
        super().__init__()
        self.state = state
        self.in_proj = nn.Linear(dim, 2 * dim, bias=False)
        self.conv = nn.Conv1d(dim, dim, 3, groups=dim, padding=2)
        self.x_proj = nn.Linear(dim, 1 + 2 * state, bias=False)
        self.dt_proj = nn.Linear(1, dim)
        steps = torch.arange(1, state + 1, dtype=torch.float32).repeat(dim, 1)
        self.a_log = nn.Parameter(torch.log(steps))
        self.d = nn.Parameter(torch.ones(dim))
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        x, z = self.in_proj(x).chunk(2, dim=-1)
        x = functional.silu(self.conv(x.transpose(1, 2))[..., :length].transpose(1, 2))
        delta, b, c = self.x_proj(x).split([1, self.state, self.state], dim=-1)
        delta = functional.softplus(self.dt_proj(delta))
        a = -torch.exp(self.a_log.float())
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
        inflow = torch.einsum("bld,bln,bld->bldn", delta, b, x)
        h = torch.zeros(x.shape[0], x.shape[2], self.state, dtype=x.dtype)
        outs = []
        for t in range(length):
            h = decay[:, t] * h + inflow[:, t]
            outs.append(torch.einsum("bdn,bn->bd", h, c[:, t]))
        y = torch.stack(outs, dim=1) + x * self.d
        return self.out(y * functional.silu(z))


@network("mamba-selective-scan")
def mamba() -> Case:
    return Mamba(3, 2), (normal(2, 4, 3),)


class Rwkv(nn.Module):
    """Time mixing with a running maximum."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.mix = nn.ParameterList(torch.rand(1, 1, dim) for _ in range(3))
        self.key = nn.Linear(dim, dim, bias=False)
        self.value = nn.Linear(dim, dim, bias=False)
        self.receptance = nn.Linear(dim, dim, bias=False)
        self.decay = nn.Parameter(torch.randn(dim))
        self.first = nn.Parameter(torch.randn(dim))
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        before = self.shift(x)
        k, v, r = (
            layer(x * m + before * (1 - m))
            for m, layer in zip(self.mix, (self.key, self.value, self.receptance), strict=True)
        )
        decay = -torch.exp(self.decay)
        top = torch.full_like(k[:, 0], -1e38)
        a = b = torch.zeros_like(k[:, 0])
        outs = []
        for t in range(x.shape[1]):
            kt, vt = k[:, t], v[:, t]
            q = torch.maximum(top, self.first + kt)
            e1, e2 = torch.exp(top - q), torch.exp(self.first + kt - q)
            outs.append((e1 * a + e2 * vt) / (e1 * b + e2))
            q = torch.maximum(top + decay, kt)
            e1, e2 = torch.exp(top + decay - q), torch.exp(kt - q)
            a, b, top = e1 * a + e2 * vt, e1 * b + e2, q
        return self.out(torch.sigmoid(r) * torch.stack(outs, 1))


@network("rwkv-time-mix")
def rwkv() -> Case:
    return Rwkv(3), (normal(2, 4, 3),)


@network("s4d-kernel")
def s4d() -> Case:
    class S4d(nn.Module):
        """A diagonal state space with real arithmetic, as a long causal convolution."""

        def __init__(self) -> None:
            super().__init__()
            self.log_dt = nn.Parameter(torch.randn(2) - 2)
            self.a_real = nn.Parameter(torch.randn(2, 3))
            self.a_imag = nn.Parameter(math.pi * torch.arange(3).float().repeat(2, 1))
            self.c = nn.Parameter(torch.randn(2, 3, 2))
            self.d = nn.Parameter(torch.randn(2))

        def forward(self, u: Tensor) -> Tensor:
            length = u.shape[-1]
            dt = torch.exp(self.log_dt)[:, None]
            real, imag = -torch.exp(self.a_real) * dt, self.a_imag * dt
            steps = torch.arange(length, dtype=u.dtype)
            grow = torch.exp(real[..., None] * steps)
            angle = imag[..., None] * steps
            kernel = (
                self.c[..., 0, None] * grow * angle.cos()
                - self.c[..., 1, None] * grow * angle.sin()
            ).sum(1) * 2
            padded = functional.pad(u, (length - 1, 0))
            y = functional.conv1d(padded, kernel.flip(-1)[:, None], groups=2)
            return functional.gelu(y + u * self.d[:, None])

    return S4d(), (normal(2, 2, 5),)


@network("s4d-fft")
def s4d_fft() -> Case:
    class Long(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = nn.Parameter(torch.randn(2, 5))

        def forward(self, u: Tensor) -> Tensor:
            n = 2 * u.shape[-1]
            k = torch.fft.rfft(self.kernel, n=n)
            return torch.fft.irfft(torch.fft.rfft(u, n=n) * k, n=n)[..., : u.shape[-1]]

    return Long(), (normal(2, 2, 5),)


@network("retention")
def retention() -> Case:
    class Retention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(4, 12, bias=False)
            self.norm = nn.GroupNorm(2, 4)
            self.gate = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            b, t, _ = x.shape
            q, k, v = self.qkv(x).chunk(3, -1)
            at = torch.arange(t, dtype=x.dtype)
            gap = at[:, None] - at[None]
            decay = torch.where(gap >= 0, 0.9**gap, torch.zeros_like(gap))
            y = (q @ k.transpose(-1, -2) * decay) @ v
            y = self.norm(y.reshape(b * t, 4)).view(b, t, 4)
            return functional.silu(self.gate(x)) * y

    return Retention(), (normal(2, 4, 4),)


@network("min-gru-parallel")
def min_gru() -> Case:
    class MinGru(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.z = nn.Linear(3, 4)
            self.h = nn.Linear(3, 4)

        @staticmethod
        def log_g(x: Tensor) -> Tensor:
            return torch.where(x >= 0, (functional.relu(x) + 0.5).log(), -functional.softplus(-x))

        def forward(self, x: Tensor) -> Tensor:
            k = self.z(x)
            log_z, log_coeff = -functional.softplus(-k), -functional.softplus(k)
            a = functional.pad(torch.cumsum(log_coeff, dim=1), (0, 0, 1, 0))
            values = torch.cat([torch.zeros_like(k[:, :1]), log_z + self.log_g(self.h(x))], 1)
            return (a + torch.logcumsumexp(values - a, dim=1)).exp()[:, 1:]

    return MinGru(), (normal(2, 4, 3),)


@network("tcn-wavenet")
def wavenet() -> Case:
    class Layer(nn.Module):
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.pad = dilation
            self.conv = nn.Conv1d(3, 6, 2, dilation=dilation)
            self.skip = nn.Conv1d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            f, g = self.conv(functional.pad(x, (self.pad, 0))).chunk(2, 1)
            return x + self.skip(torch.tanh(f) * torch.sigmoid(g))

    return nn.Sequential(Layer(1), Layer(2), Layer(4)), (normal(2, 3, 6),)


@network("highway")
def highway() -> Case:
    class Highway(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 8) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                h, t = layer(x).chunk(2, dim=-1)
                t = torch.sigmoid(t)
                x = t * functional.relu(h) + (1 - t) * x
            return x

    return Highway(), (normal(3, 4),)


@network("graph-attention-dense")
def graph() -> Case:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Linear(3, 4, bias=False)
            self.a = nn.Parameter(torch.randn(8))

        def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
            h = self.w(x)
            scores = (h @ self.a[:4])[:, None] + (h @ self.a[4:])[None]
            scores = functional.leaky_relu(scores, 0.2)
            scores = torch.where(adjacency > 0, scores, torch.full_like(scores, -9e15))
            degree = adjacency.sum(1).clamp(min=1).rsqrt()
            return functional.elu(scores.softmax(1) @ h) + degree[:, None]

    return Graph(), (normal(5, 3), (torch.rand(5, 5) > 0.5).float())


@network("hyena-like-gating")
def hyena() -> Case:
    class Hyena(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.proj = nn.Linear(3, 9)
            self.short = nn.Conv1d(9, 9, 3, padding=2, groups=9)
            self.filters = nn.Parameter(torch.randn(3, 5))

        def forward(self, x: Tensor) -> Tensor:
            t = x.shape[1]
            u = self.short(self.proj(x).transpose(1, 2))[..., :t]
            a, b, v = u.split(3, dim=1)
            index = torch.arange(t)[:, None] - torch.arange(t)[None]
            toeplitz = torch.where(index >= 0, self.filters[:, index.clamp(min=0)], 0.0)
            y = torch.einsum("dts,bds->bdt", toeplitz, v * a) * b
            return y.transpose(1, 2)

    return Hyena(), (normal(2, 5, 3),)
