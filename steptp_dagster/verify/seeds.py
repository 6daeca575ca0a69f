"""Random generators named by what they are for, the same in every process and on every machine."""

from hashlib import blake2b

import numpy as np


def generator(seed: int, *names: str) -> np.random.Generator:
    """A PCG64 generator for a seed and a path of names; other names give independent streams."""
    digest = blake2b("\0".join(names).encode(), digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))
