"""What every translation is held to."""

from collections.abc import Mapping

from torch import Tensor, nn

from steptp_dagster.leir.parser import parse
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.validity import check
from steptp_dagster.translate.fidelity import fidelity
from steptp_dagster.translate.translate import Translation, TranslationRefusal, translate


def translated(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    ranges: Mapping[str, tuple[int | float, int | float]] | None = None,
    *,
    naive: bool = False,
) -> Translation:
    """The translation of a module that must have one."""
    result = translate(module, inputs, ranges=ranges, naive=naive)
    assert not isinstance(result, TranslationRefusal), str(result)
    return result


def faithful(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    ranges: Mapping[str, tuple[int | float, int | float]] | None = None,
) -> Translation:
    """Translate; the program must be valid, read back as printed, and compute what PyTorch does."""
    result = translated(module, inputs, ranges)
    text = to_text(result.signed.program)
    assert parse(text).program == result.signed.program
    assert check(result.signed) == (), text
    found = fidelity(module, inputs, result)
    assert found.faithful, f"{found}\n{text}"
    return result
