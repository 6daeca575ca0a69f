"""Constants kept in ``.npy`` files beside an original program."""

from pathlib import Path

import numpy as np

from steptp_dagster.leir.dtypes import DType
from steptp_dagster.leir.signature import Scalar


class ArrayError(ValueError):
    """A file that cannot serve as a constant; the message says what was found."""


def read_npy(base: Path, name: str, dtype: DType, shape: tuple[int, ...]) -> tuple[Scalar, ...]:
    """The elements of ``base/name`` in row-major order.

    The file must lie below ``base`` (links resolved) and hold an array of exactly ``dtype`` and
    ``shape`` without NaN; ``bf16`` has no NumPy dtype and is refused. Nothing in the file is ever
    executed (no pickles). Raises ArrayError.
    """
    root = base.resolve()
    try:
        path = (root / name).resolve()
    except (OSError, ValueError) as error:
        raise ArrayError(f"{name!r}, which is no path") from error
    if not path.is_relative_to(root):
        raise ArrayError(f"{name!r}, which lies outside the folder of the program")
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ArrayError(f"{name!r}, which cannot be read ({type(error).__name__})") from error
    if not isinstance(array, np.ndarray) or str(array.dtype) != dtype.numpy:
        raise ArrayError(f"{name!r} of dtype {getattr(array, 'dtype', 'unknown')}")
    if array.shape != shape:
        raise ArrayError(f"{name!r} of shape {list(array.shape)}")
    if dtype.is_float and bool(np.isnan(array).any()):
        raise ArrayError(f"{name!r} with NaN values")
    return tuple(array.ravel().tolist())
