"""Transformers and their parts."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.support.networks.base import Case, integers, network, normal


class CausalAttention(nn.Module):
    def __init__(self, width: int, heads: int, length: int, relu: bool = False) -> None:
        super().__init__()
        self.heads, self.relu = heads, relu
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        mask = torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        self.register_buffer("bias", mask)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.size()
        q, k, v = self.attend(x).split(c, dim=2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        weights = functional.relu(scores) if self.relu else functional.softmax(scores, dim=-1)
        y = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.project(y)


class NewGelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


class GptBlock(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, length)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict(
            {"up": nn.Linear(width, 2 * width), "down": nn.Linear(2 * width, width)}
        )
        self.act = NewGelu()
        self.mlpf = lambda x: self.mlp["down"](self.act(self.mlp["up"](x)))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.mlpf(self.ln2(x))


@network("mingpt-causal-attention")
def causal() -> Case:
    return CausalAttention(4, 2, 6), (normal(2, 5, 4),)


@network("mingpt-relu-attention")
def relu_attention() -> Case:
    return CausalAttention(4, 2, 6, relu=True), (normal(2, 5, 4),)


@network("mingpt-block")
def gpt_block() -> Case:
    return GptBlock(4, 2, 6), (normal(2, 5, 4),)


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(7, 4)
        self.position = nn.Embedding(6, 4)
        self.blocks = nn.ModuleList(GptBlock(4, 2, 6) for _ in range(2))
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 7, bias=False)
        self.token.weight = self.head.weight

    def forward(self, tokens: Tensor) -> Tensor:
        t = tokens.size(1)
        x = self.token(tokens) + self.position(torch.arange(0, t, dtype=torch.long).unsqueeze(0))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@network("gpt-tied-weights")
def gpt() -> Case:
    return Gpt(), (integers(7, 2, 5),)


class VitBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 6), nn.GELU(), nn.Linear(6, width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


@network("vit-block")
def vit_block() -> Case:
    return VitBlock(4, 2), (normal(2, 5, 4),)


class Vit(nn.Module):
    def __init__(self, depth: int = 2, dim: int = 4) -> None:
        super().__init__()
        self.patch = 2
        self.position = nn.Parameter(torch.randn(1, 5, dim))
        self.embed = nn.Linear(12, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        layer = nn.TransformerEncoderLayer(d_model=dim, nhead=2, dim_feedforward=8)
        self.transformer = nn.TransformerEncoder(layer, num_layers=depth)
        self.head = nn.Sequential(nn.Linear(dim, 6), nn.GELU(), nn.Linear(6, 3))

    def forward(self, image: Tensor) -> Tensor:
        p = self.patch
        x = image.unfold(2, p, p).unfold(3, p, p).reshape(image.shape[0], -1, p * p * 3)
        x = self.embed(x)
        x = torch.cat((self.cls.expand(image.shape[0], -1, -1), x), dim=1)
        x = self.transformer(x + self.position)
        return self.head(x[:, 0])


@network("vision-transformer")
def vit() -> Case:
    return Vit(), (normal(1, 3, 4, 4),)


class ConvVit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 2, 2)
        self.linear = nn.Linear(16, 4)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.cls = nn.Parameter(torch.zeros(1, 1, 4))
        self.out = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(self.conv(x).flatten(start_dim=1)).unsqueeze(1)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1)
        for layer in self.layers:
            x = layer(x)
        return self.out(x[:, 0])


@network("conv-vit")
def conv_vit() -> Case:
    return ConvVit(), (normal(2, 3, 4, 4),)


@network("vision-attention")
def vision_attention() -> Case:
    class VisionAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2)
            self.norm = nn.LayerNorm(4)

        def forward(self, x: Tensor) -> Tensor:
            b, c, h, w = x.shape
            x = x.view(b, c, h * w).permute(2, 0, 1)
            y, _ = self.attention(x, x, x)
            return self.norm(y + x).permute(1, 2, 0).view(b, c, h, w)

    return VisionAttention(), (normal(2, 4, 2, 3),)


@network("cross-attention")
def cross_attention() -> Case:
    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q = nn.Linear(4, 6, bias=False)
            self.kv = nn.Linear(5, 12, bias=False)
            self.out = nn.Linear(6, 4)

        def forward(self, x: Tensor, context: Tensor) -> Tensor:
            b, n, _ = x.shape
            q = self.q(x).reshape(b, n, 2, 3).permute(0, 2, 1, 3)
            k, v = self.kv(context).reshape(b, -1, 2, 2, 3).permute(2, 0, 3, 1, 4)
            weights = torch.einsum("bhid,bhjd->bhij", q, k) * 3**-0.5
            y = torch.einsum("bhij,bhjd->bhid", weights.softmax(-1), v)
            return self.out(y.transpose(1, 2).flatten(2))

    return Cross(), (normal(2, 3, 4), normal(2, 5, 5))


class RmsNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return y.type_as(x) * self.weight


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class LlamaAttention(nn.Module):
    """Grouped-query attention with rotary positions and a cache of keys and values."""

    def __init__(self, dim: int, heads: int, groups: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, groups * self.size, bias=False)
        self.wv = nn.Linear(dim, groups * self.size, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        inverse = 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size))
        self.register_buffer("inverse", inverse)

    def rotated(self, x: Tensor, start: int) -> Tensor:
        at = torch.arange(start, start + x.shape[-2])
        angles = torch.outer(at.float(), self.inverse)
        emb = torch.cat((angles, angles), dim=-1)
        return x * emb.cos() + rotate_half(x) * emb.sin()

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, t, _ = x.shape
        past = keys.shape[2]
        q = self.wq(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k = self.wk(x).view(b, t, self.groups, self.size).transpose(1, 2)
        v = self.wv(x).view(b, t, self.groups, self.size).transpose(1, 2)
        q, k = self.rotated(q, past), self.rotated(k, past)
        keys = torch.cat([keys, k], dim=2)
        values = torch.cat([values, v], dim=2)
        repeat = self.heads // self.groups
        full = keys[:, :, None].expand(-1, -1, repeat, -1, -1).reshape(b, self.heads, -1, self.size)
        wide = torch.repeat_interleave(values, repeat, dim=1)
        mask = torch.full((t, t + past), float("-inf"), dtype=x.dtype).triu(past + 1)
        scores = full.new_zeros(()) + q @ full.transpose(2, 3) / math.sqrt(self.size)
        weights = functional.softmax((scores + mask).float(), dim=-1).type_as(q)
        y = (weights @ wide).transpose(1, 2).contiguous().view(b, t, -1)
        return self.wo(y), keys, values


@network("gqa-kv-cache-rope")
def llama_attention() -> Case:
    return LlamaAttention(8, 4, 2), (normal(1, 3, 8), normal(1, 2, 2, 2), normal(1, 2, 2, 2))


class SwiGlu(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


@network("rmsnorm-swiglu")
def swiglu() -> Case:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = RmsNorm(4)
            self.mlp = SwiGlu(4, 6)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.mlp(self.norm(x))

    return Block(), (normal(2, 3, 4),)


@network("rope-complex")
def rope_complex() -> Case:
    class Rope(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            freqs = 1.0 / (10000.0 ** (torch.arange(0, 4, 2).float() / 4))
            angles = torch.outer(torch.arange(5).float(), freqs)
            self.register_buffer("turn", torch.polar(torch.ones_like(angles), angles))

        def forward(self, x: Tensor) -> Tensor:
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * self.turn[None, :, None]).flatten(3).type_as(x)

    return Rope(), (normal(2, 5, 2, 4),)


@network("rope-interleaved")
def rope_interleaved() -> Case:
    class Rope(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            t, d = x.shape[1], x.shape[2]
            inverse = 1.0 / 10000 ** (torch.arange(0, d, 2, dtype=x.dtype) / d)
            angles = torch.arange(t, dtype=x.dtype)[:, None] * inverse[None]
            cos, sin = angles.cos(), angles.sin()
            even, odd = x[..., 0::2], x[..., 1::2]
            turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
            return turned.flatten(-2)

    return Rope(), (normal(2, 5, 4),)


class Experts(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.gate = nn.Linear(4, 3, bias=False)
        self.experts = nn.ModuleList(SwiGlu(4, 5) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        weights = functional.softmax(self.gate(x), dim=-1)
        if self.kind == "topk":
            values, chosen = torch.topk(weights, 2, dim=-1)
            values = values / values.sum(-1, keepdim=True)
            mask = functional.one_hot(chosen, 3).to(x.dtype)
            weights = (mask * values.unsqueeze(-1)).sum(-2)
        outs = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (outs * weights.unsqueeze(-2)).sum(-1)


@network("moe-dense")
def moe() -> Case:
    return Experts("dense"), (normal(2, 3, 4),)


@network("moe-topk")
def moe_topk() -> Case:
    return Experts("topk"), (normal(2, 3, 4),)


@network("alibi-attention")
def alibi() -> Case:
    class Alibi(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(4, 12)
            slopes = torch.tensor([2 ** (-8.0 * (i + 1) / 2) for i in range(2)])
            self.register_buffer("slopes", slopes)

        def forward(self, x: Tensor) -> Tensor:
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, 2, 2).unbind(2)
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / 2**0.5
            distance = torch.arange(t)[None, :] - torch.arange(t)[:, None]
            scores = scores + self.slopes[:, None, None] * distance.to(x.dtype)
            hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
            return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).reshape(b, t, -1)

    return Alibi(), (normal(2, 5, 4),)


@network("sinusoidal-positions")
def sinusoid() -> Case:
    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            position = torch.arange(10).unsqueeze(1)
            factor = torch.exp(torch.arange(0, 6, 2) * (-math.log(10000.0) / 6))
            table = torch.zeros(10, 1, 6)
            table[:, 0, 0::2] = torch.sin(position * factor)
            table[:, 0, 1::2] = torch.cos(position * factor)
            self.register_buffer("table", table)

        def forward(self, x: Tensor) -> Tensor:
            return x * math.sqrt(6) + self.table[: x.size(0)]

    return Positions(), (normal(5, 2, 6),)


@network("linear-attention")
def linear_attention() -> Case:
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(4, 12, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            q, k = functional.elu(q) + 1, functional.elu(k) + 1
            state = torch.cumsum(torch.einsum("btd,bte->btde", k, v), dim=1)
            norm = torch.einsum("btd,btd->bt", q, k.cumsum(1)).clamp(min=1e-6)
            return torch.einsum("btd,btde->bte", q, state) / norm.unsqueeze(-1)

    return Linear(), (normal(2, 5, 4),)


@network("sliding-window-attention")
def sliding() -> Case:
    class Sliding(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            t = q.shape[-2]
            i, j = torch.arange(t)[:, None], torch.arange(t)[None]
            mask = (j <= i) & (i - j < 3)
            return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return Sliding(), (normal(1, 2, 6, 3), normal(1, 2, 6, 3), normal(1, 2, 6, 3))


@network("sdpa-forms")
def sdpa() -> Case:
    class Forms(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
            attend = functional.scaled_dot_product_attention
            return (
                attend(q, k, v, is_causal=True),
                attend(q, k, v, attn_mask=bias, scale=0.3),
                attend(q, k[:, :1], v[:, :1], enable_gqa=True),
            )

    return Forms(), (normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(1, 2, 4, 3), normal(4, 4))


@network("dit-block")
def dit() -> Case:
    class Dit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(4, elementwise_affine=False, eps=1e-6)
            self.norm2 = nn.LayerNorm(4, elementwise_affine=False, eps=1e-6)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
            self.mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU("tanh"), nn.Linear(8, 4))
            self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(3, 24))

        def forward(self, x: Tensor, c: Tensor) -> Tensor:
            parts = self.modulation(c).unsqueeze(1).chunk(6, dim=-1)
            y = self.norm1(x) * (1 + parts[1]) + parts[0]
            x = x + parts[2] * self.attention(y, y, y)[0]
            y = self.norm2(x) * (1 + parts[4]) + parts[3]
            return x + parts[5] * self.mlp(y)

    return Dit(), (normal(2, 3, 4), normal(2, 3))


def _attending(name: str, module: nn.Module, *inputs: Tensor, **options: object) -> None:
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *inputs: Tensor) -> object:
            names = [k for k, v in options.items() if v is None]
            given = inputs[: len(inputs) - len(names)]
            named = dict(zip(names, inputs[len(given) :], strict=True))
            fixed = {k: v for k, v in options.items() if v is not None}
            return self.inner(*given, **fixed, **named)

    @network(name)
    def make() -> Case:
        return Attending(), inputs


torch.manual_seed(7)
_x, _y = normal(2, 3, 4), normal(2, 5, 4)
_blocked = torch.tensor([[False, False, True], [False, True, True]])
_upper = torch.ones(3, 3, dtype=torch.bool).triu(1)
_float = torch.zeros(3, 3).masked_fill(_upper, float("-inf"))
_mha = nn.MultiheadAttention
_attending("mha-weights", _mha(4, 2, batch_first=True), _x, _y, _y)
_attending("mha-per-head", _mha(4, 2, batch_first=True), _x, _x, _x, average_attn_weights=False)
_attending(
    "mha-masks",
    _mha(4, 2, batch_first=True, bias=False),
    _x,
    _x,
    _x,
    _blocked,
    _upper,
    key_padding_mask=None,
    attn_mask=None,
    need_weights=False,
)
_attending(
    "mha-causal",
    _mha(4, 2, batch_first=True),
    _x,
    _x,
    _x,
    _float,
    attn_mask=None,
    is_causal=True,
    need_weights=False,
)
_attending(
    "mha-kdim-bias-kv",
    _mha(4, 2, batch_first=True, kdim=3, vdim=2, add_bias_kv=True, add_zero_attn=True),
    _x,
    normal(2, 5, 3),
    normal(2, 5, 2),
)
_attending("mha-unbatched", _mha(4, 2), _x[0], _y[0], _y[0])


def _layer(**options: object) -> nn.Module:
    return nn.TransformerEncoderLayer(4, 2, 6, **options)  # type: ignore[arg-type]


_attending("encoder-layer", _layer(batch_first=True), _x)
_attending("encoder-layer-sequence-first", _layer(), _x)
_attending(
    "encoder-layer-norm-first", _layer(norm_first=True, activation="gelu", batch_first=True), _x
)
_attending(
    "encoder-layer-padding",
    _layer(batch_first=True, bias=False),
    _x,
    _blocked,
    src_key_padding_mask=None,
)
_attending(
    "encoder-layer-causal",
    _layer(batch_first=True),
    _x,
    _float,
    src_mask=None,
    is_causal=True,
)
_attending(
    "encoder",
    nn.TransformerEncoder(_layer(batch_first=True), 2, nn.LayerNorm(4)),
    _x,
    _blocked,
    src_key_padding_mask=None,
)
_attending(
    "decoder-layer",
    nn.TransformerDecoderLayer(4, 2, 6, batch_first=True),
    _x,
    _y,
    _upper,
    tgt_mask=None,
)
_attending(
    "decoder-layer-norm-first",
    nn.TransformerDecoderLayer(4, 2, 6, norm_first=True),
    _x.transpose(0, 1),
    _y.transpose(0, 1),
)
_attending(
    "transformer",
    nn.Transformer(4, 2, 1, 1, 6, batch_first=True),
    _x,
    _y[:, :3],
    _upper,
    tgt_mask=None,
)
