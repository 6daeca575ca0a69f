"""The programs written by hand that mistakes are made in: the zoo's originals and right forms."""

from typing import Final

from steptp_dagster.lowering import executed_equations
from steptp_dagster.verify.mutation.generate import Base
from steptp_dagster.verify.zoo import originals
from steptp_dagster.verify.zoo.right import RIGHT

#: The interpreter takes some ten microseconds for each.
MOST_EQUATIONS: Final = 2500


def by_hand() -> tuple[Base, ...]:
    """Every original of the zoo, and every right form of one; without those that run long."""
    plain = [
        Base.of(name.lower().replace("_", "-"), text)
        for name, text in vars(originals).items()
        if name.isupper() and isinstance(text, str)
    ]
    forms = [
        Base.of(f"{pair.kind}, {pair.name}", pair.original, pair.candidate)
        for pair in RIGHT
        if pair.candidate != pair.original
    ]
    return tuple(base for base in (*plain, *forms) if small(base))


def small(base: Base) -> bool:
    """Whether the interpreter runs both programs in little time."""
    return max(map(executed_equations, (base.original, base.form))) <= MOST_EQUATIONS
