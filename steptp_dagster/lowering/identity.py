"""Programs as keys of caches."""

from collections import OrderedDict
from math import copysign
from typing import Final

from steptp_dagster.leir.signature import SignedProgram

#: Programs whose identity is kept: working out the hash of a large one takes a while.
_IDENTITIES: Final = 256


class Identity:
    """A program as a key: equal exactly where programs compute the same in every bit.

    ``zeros`` are the places of negative zeros in its constants, which ``==`` does not tell apart.
    """

    __slots__ = ("_hash", "signed", "zeros")

    def __init__(self, signed: SignedProgram) -> None:
        self.signed = signed
        self.zeros = tuple(
            tuple(i for i, v in enumerate(variable.values) if v == 0 and copysign(1.0, v) < 0.0)
            for variable in signed.signature.sources
            if variable.values is not None
        )
        self._hash = hash((signed, self.zeros))

    def __hash__(self) -> int:
        """Worked out once."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Whether both are the same program in every bit."""
        if self is other:
            return True
        if not isinstance(other, Identity) or self._hash != other._hash:
            return False
        return self.zeros == other.zeros and self.signed == other.signed


_identities: OrderedDict[int, Identity] = OrderedDict()


def identity_of(signed: SignedProgram) -> Identity:
    """The identity of a program."""
    found = _identities.get(id(signed))
    if found is None or found.signed is not signed:
        found = _identities[id(signed)] = Identity(signed)
        while len(_identities) > _IDENTITIES:
            _identities.popitem(last=False)
    return found
