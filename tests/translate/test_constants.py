"""Constants: formulas for masks and ramps, sharing of large tables, and the limit."""

import torch
from torch import Tensor, nn

from steptp_dagster.leir.printer import to_text
from steptp_dagster.translate.constants import LARGE, LIMIT
from steptp_dagster.translate.translate import TranslationRefusal, translate
from tests.support.translation import faithful, translated

INFINITY = float("inf")


class Masked(nn.Module):
    """Adds a buffer to its input, or chooses by it."""

    held: Tensor

    def __init__(self, held: Tensor) -> None:
        super().__init__()
        self.register_buffer("held", held)

    def forward(self, x: Tensor) -> Tensor:
        if self.held.dtype == torch.bool:
            return torch.where(self.held, x, -x)
        return x + self.held


def values(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


TRIANGLES = {
    "lower": torch.ones(4, 4).tril(),
    "lower-rectangle": torch.ones(2, 5).tril(2) * 3,
    "tall": torch.ones(5, 3).tril(-1),
    "far-below": torch.ones(5, 5).tril(-3),
    "upper-infinite": torch.full((4, 4), -INFINITY).triu(1),
    "upper": torch.ones(4, 4).triu(-1),
    "bools": torch.ones(4, 4, dtype=torch.bool).tril(),
    "bools-upper": torch.ones(3, 4, dtype=torch.bool).triu(2),
    "heads": torch.ones(3, 3).tril().expand(2, 3, 3).contiguous(),
    "integers": torch.ones(3, 3, dtype=torch.int64).tril(1) * 7 - 2,
}


def together(constants: dict[str, Tensor]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """One module that uses every constant on an input of its own."""

    class All(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(Masked(held) for held in constants.values())

        def forward(self, *inputs: Tensor) -> list[Tensor]:
            return [part(x) for part, x in zip(self.parts, inputs, strict=True)]

    return All(), tuple(values(*held.shape) for held in constants.values())


def test_triangles_are_formulas() -> None:
    translation = faithful(*together(TRIANGLES))
    assert [v for v in translation.signed.signature.variables if v.role == "const"] == []


NOT_TRIANGLES = {
    "one-off": torch.tensor([[1.0, 0, 0], [1, 1, 0], [1, 0, 1]]),
    "three-values": torch.tensor([[1.0, 0], [2, 1]]),
    "other-heads": torch.stack([torch.ones(3, 3).tril(), torch.ones(3, 3).triu()]),
    "row": torch.tensor([[1.0, 0, 0]]),
    "uniform": torch.ones(3, 3),
}


def test_other_constants_keep_their_values() -> None:
    translation = faithful(*together(NOT_TRIANGLES))
    constants = [v for v in translation.signed.signature.variables if v.role == "const"]
    expected = [tuple(held.reshape(-1).tolist()) for held in NOT_TRIANGLES.values()]
    assert [v.values for v in constants] == expected


def test_large_uniform_and_repeated_constants_are_short() -> None:
    uniform = torch.full((LARGE,), 0.5)
    assert "A^{f32,g}_{bx*1024+tx}+0.5" in text_of(Masked(uniform), values(LARGE))
    repeated = values(LARGE // 8).expand(8, LARGE // 8).contiguous()
    translation = translated(Masked(repeated), (values(*repeated.shape),))
    (constant,) = [v for v in translation.signed.signature.variables if v.role == "const"]
    assert constant.shape == (1, LARGE // 8)


def test_large_ramps_are_index_arithmetic() -> None:
    class Positions(nn.Module):
        ids: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("ids", torch.arange(2 * LARGE).view(2, LARGE) * 2 + 1)

        def forward(self, x: Tensor) -> Tensor:
            return x[self.ids[:, :3]] * 2

    module = Positions()
    translation = faithful(module, (values(4 * LARGE),))
    assert [v.role for v in translation.signed.signature.variables] == ["input", "output"]


def text_of(module: nn.Module, *inputs: Tensor) -> str:
    return to_text(translated(module, inputs).signed.program)


def test_equal_large_tables_are_one() -> None:
    table = values(LARGE)
    module = nn.Sequential(Masked(table), Masked(table.clone()), Masked(values(LARGE) * 2))
    translation = translated(module, (values(LARGE),))
    constants = [v for v in translation.signed.signature.variables if v.role == "const"]
    assert len(constants) == 2


def test_constants_that_nothing_reads_cost_nothing() -> None:
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("held", values(LIMIT + 1))

        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    translated(Idle(), (values(3),))


def test_too_many_elements_are_refused_by_name() -> None:
    refusal = translate(Masked(values(LIMIT + 1)), (values(LIMIT + 1),))
    assert isinstance(refusal, TranslationRefusal)
    assert (refusal.operator, refusal.argument) == ("input", "held")
    assert "make it a parameter" in refusal.message
