"""Hundreds of small programs: each is translated and right, or refused for a reason. Never else."""

import pytest

from tests.support.battery.judge import judged
from tests.support.battery.tables import BATTERY, REFUSED

#: Every so many programs one is judged in the default run.
STRIDE = 29


def held(name: str) -> None:
    finding = judged(BATTERY[name])
    if name in REFUSED:
        assert finding.kind == "refused", finding
        assert finding.text.startswith(REFUSED[name]), finding
    else:
        assert finding.kind == "right", finding


@pytest.mark.parametrize("name", list(BATTERY)[::STRIDE])
def test_a_sample_is_right_or_refused_for_a_reason(name: str) -> None:
    held(name)


# What PyTorch says of two functions' names and settings when they run.
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss by both:UserWarning")
@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter with Tensor:UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for i, n in enumerate(BATTERY) if i % STRIDE])
def test_every_program_is_right_or_refused_for_a_reason(name: str) -> None:
    held(name)


def test_refusals_belong_to_programs() -> None:
    assert set(REFUSED) <= set(BATTERY)
