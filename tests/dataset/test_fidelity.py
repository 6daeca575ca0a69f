"""Comparisons of translations with PyTorch: right ones pass, wrong ones fail where they differ."""

import torch
from torch import Tensor, nn

from steptp_dagster.dataset.evidence import Evidence, gather
from steptp_dagster.dataset.fidelity import Rounding, cases, comparisons
from steptp_dagster.leir.fileform import read
from steptp_dagster.translate.reference import ModuleFailed, Reference
from steptp_dagster.translate.translate import Translation
from tests.support.translation import translated


class Above(nn.Module):
    """Values above one half; ``or_equal``: or equal to it."""

    def __init__(self, or_equal: bool) -> None:
        super().__init__()
        self.or_equal = or_equal

    def forward(self, x: Tensor) -> Tensor:
        above = x >= 0.5 if self.or_equal else x > 0.5
        return torch.where(above, x + 1.0, x - 1.0)


class Scaled(nn.Module):
    """``x`` times a weight that is 1 at first, plus 1; ``late``: scaled after the addition."""

    def __init__(self, late: bool) -> None:
        super().__init__()
        self.late = late
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return (x + 1.0) * self.weight if self.late else x * self.weight + 1.0


class Picky(nn.Module):
    """Refuses negative data, as code with checks of its own does."""

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_exporting() and bool((x < 0).any()):
            raise ValueError("negative")
        return torch.sqrt(x) + x


class Total(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(dim=1)


class Softmax(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(x, dim=-1)


def evidence(module: nn.Module, other: nn.Module, *inputs: Tensor) -> Evidence:
    """What speaks for the translation of ``other`` as one of ``module``."""
    return gather(Reference(module, inputs, translated(other, inputs)))


def test_right_translations_have_no_objection() -> None:
    found = evidence(Above(True), Above(True), torch.randn(3, 4))
    assert found.objection() is None
    assert found.worst == 0.0
    assert {c.family for c in found.comparisons} >= {"given", "ties", "thresholds"}
    assert {c.evaluator for c in found.comparisons} == {"tvm", "interpreter"}


def test_a_tie_that_goes_the_other_way_is_found() -> None:
    found = evidence(Above(True), Above(False), torch.randn(3, 4))
    wrong = {c.family for c in found.comparisons if c.difference > 1e-9}
    assert "thresholds" in wrong
    assert wrong.isdisjoint({"given", "normal"})
    objection = found.objection()
    assert objection is not None
    assert objection[0] == "unfaithful"


def test_parameters_that_are_one_at_first_are_tried_with_other_values() -> None:
    found = evidence(Scaled(False), Scaled(True), torch.randn(3, 4))
    given, *others = [c for c in found.comparisons if c.evaluator == "tvm"]
    assert given.difference <= 1e-15
    assert all(c.difference > 1e-3 for c in others)


def test_a_module_that_refuses_data_is_tried_on_positive_data() -> None:
    found = evidence(Picky(), Picky(), torch.rand(3, 4))
    usable = {c.family for c in found.comparisons if c.usable}
    assert usable >= {"given", "normal/positive", "negative/positive"}
    assert "normal" not in usable
    assert found.objection() is None


class Spread(nn.Module):
    """The sign of a variance, as it were; ``safely`` of the centred values."""

    def __init__(self, safely: bool) -> None:
        super().__init__()
        self.safely = safely

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=1, keepdim=True)
        if self.safely:
            variance = ((x - mean) ** 2).mean(dim=1)
        else:
            variance = (x * x).mean(dim=1) - (mean * mean).sum(dim=1)
        return variance / (variance.abs() + 1e-18)


def test_data_on_which_only_rounding_is_left_proves_nothing() -> None:
    """The variance of equal values is what is left of rounding, and its sign is arbitrary."""
    x = torch.full((2, 7), 1.3, dtype=torch.float64)
    found = evidence(Spread(False), Spread(True), x)
    by_family = {c.family: c for c in found.comparisons if c.evaluator == "tvm"}
    assert by_family["given"].difference > 1e-9
    assert not by_family["given"].usable
    assert by_family["normal"].usable
    assert found.objection() is None


def test_too_little_data_is_no_evidence() -> None:
    found = evidence(Softmax(), Softmax(), torch.randn(2, 3))
    kept = tuple(c for c in found.comparisons if c.family in ("given", "ties"))
    objection = Evidence(kept, (), "program").objection()
    assert objection is not None
    assert objection[0] == "too-few-families"


def test_sums_in_halves_are_not_what_pytorch_does() -> None:
    text = (
        "# input A f16[2,3000]\n# output C f16[2]\n"
        "B^{2}_{tx=0}L^{3000}_{a=0}[C^{f16,g}_{tx}=C^{f16,g}_{tx}+A^{f16,g}_{tx,a};];"
    )
    names = {"A": "x", "C": "output 0"}
    narrow = Translation(read(text).signed, names, (), "")
    x = torch.rand(2, 3000, dtype=torch.float16)
    found = gather(Reference(Total(), (x,), narrow))
    assert all(c.difference < 1e-12 for c in found.comparisons)
    objection = found.objection()
    assert objection is not None
    assert objection[0] == "unfaithful-in-working-precision"
    assert gather(Reference(Total(), (x,), translated(Total(), (x,)))).objection() is None


def test_overflow_of_the_program_alone_is_an_objection() -> None:
    assert Rounding("normal", 1.0, 2.0, 1.0).agrees
    assert not Rounding("normal", 1.0, 2.0, 1.0, overflow=True).agrees
    assert not Rounding("normal", 100.0, 2.0, 1.0).agrees
    assert not Rounding("normal", 2.0, 100.0, 1.0).agrees


def test_inputs_are_never_changed() -> None:
    class InPlace(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mul_(2.0).add_(1.0)

    x = torch.ones(3, dtype=torch.float64)
    reference = Reference(InPlace(), (x,), translated(InPlace(), (x.clone(),)))
    assert all(c.difference == 0.0 for c in comparisons(reference, "tvm", cases(reference)))
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_a_failing_module_says_what_it_raised() -> None:
    x = torch.rand(3)
    reference = Reference(Picky(), (x,), translated(Picky(), (x,)))
    arrays = {name: -values for name, values in reference.given().items()}
    try:
        reference.run(arrays, double=True)
    except ModuleFailed as error:
        assert str(error) == "ValueError: negative"
    else:
        raise AssertionError("it did not raise")
