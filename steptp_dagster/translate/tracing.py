"""Watching PyTorch trace a module: whose line an operator comes from, and when to give up."""

import logging
import re
import sysconfig
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Final

import torch
from torch.fx.proxy import TracerBase

#: Operators that a traced module may have. PyTorch takes some ten milliseconds for each.
LIMIT: Final = 4096

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in [^\n]+\n\s*(?P<code>[^\n]*)')
_TORCH: Final = str(Path(torch.__file__).parent)
_NN: Final = str(Path(_TORCH, "nn"))
_OURS: Final = str(Path(__file__).parent)
_LIBRARY: Final = sysconfig.get_paths()["stdlib"]
#: Where PyTorch decides which frames of a stack belong to an operator.
_FILTER: Final = "_filter_traceback_frames"
#: What PyTorch says about its own reasoning while it traces.
_TALKATIVE: Final = (
    "torch._export.non_strict_utils",
    "torch._subclasses.fake_tensor",
    "torch.export._trace",
    "torch.fx.experimental.symbolic_shapes",
)


class TooLarge(RuntimeError):
    """A module has more than ``LIMIT`` operators."""

    def __init__(self) -> None:
        super().__init__(
            f"more than {LIMIT} operators; loops in Python count once for every turn, so shorter "
            "sequences do, and so do nn.LSTM, nn.GRU and nn.RNN of any length"
        )


@contextmanager
def watched() -> Iterator[None]:
    """Trace with a record of the line, in helper functions too, that called each operator.

    PyTorch records the lines of ``forward`` methods only. Raises TooLarge where there are too many
    operators.
    """
    before = getattr(TracerBase, _FILTER, None)
    if before is None:  # a PyTorch that works otherwise records what it does
        yield
        return
    count = 0

    def frames(_tracer: TracerBase, summary: traceback.StackSummary) -> traceback.StackSummary:
        nonlocal count
        count += 1
        if count > LIMIT:
            raise TooLarge
        first = next((i for i, f in enumerate(summary) if f.name == "forward"), len(summary))
        return traceback.StackSummary.from_list(
            [
                f
                for f in summary[first:]
                if _distance(f.filename) < 2 or (f.name == "forward" and _NN in f.filename)
            ]
        )

    setattr(TracerBase, _FILTER, frames)
    try:
        yield
    finally:
        setattr(TracerBase, _FILTER, before)


@contextmanager
def quiet() -> Iterator[None]:
    """Exporting warns about internals of PyTorch that no caller can change.

    What it prints where it fails (the graph so far) is in the refusal as far as it helps.
    """
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def location(stack_trace: str | None) -> str:
    """The innermost line of the user's own code in a stack trace, as ``file:line: code``.

    Lines of other packages, and of PyTorch, count where there are no others.
    """
    frames = [f for f in _FRAME.finditer(stack_trace or "") if not _is_hidden(f["file"])]
    if not frames:
        return ""
    nearest = min(_distance(f["file"]) for f in frames)
    last = [f for f in frames if _distance(f["file"]) == nearest][-1]
    return f"{last['file']}:{last['line']}: {last['code'].strip()}"


def raised_at(error: BaseException) -> str:
    """The line of the user's own code that led to an error of exporting, or an empty text."""
    seen: BaseException | None = error
    while seen is not None:
        own = [f for f in traceback.extract_tb(seen.__traceback__) if not _distance(f.filename)]
        if own:
            return f"{own[-1].filename}:{own[-1].lineno}: {(own[-1].line or '').strip()}"
        seen = seen.__cause__ or seen.__context__
    return location(str(error))


def _is_hidden(file: str) -> bool:
    """Whether a file is ours or made up."""
    return file.startswith((_OURS, "<"))


def _distance(file: str) -> int:
    """0 for files of the user, 1 for those of packages, 2 for those that nobody wants to see."""
    if _is_hidden(file) or file.startswith(_TORCH):
        return 2
    if "site-packages" in file:
        return 1
    return 2 if file.startswith(_LIBRARY) else 0


#: What errors of exporting mean, by a part of their text.
_MEANINGS: Final = (
    (
        "Could not guard on data-dependent",
        "control flow that depends on data, of which LEIR has none; torch.where does",
    ),
    (
        "Could not extract specialized integer",
        "a size or a Python number that depends on data; fixed ones, or tensors, do",
    ),
    (".numpy() is not supported", "NumPy inside a module; functions of PyTorch do"),
    ("nested_tensor", "nested tensors; padded tensors with a mask do"),
    ("Cannot access data pointer", "the address of data; its values do"),
    ("not linked with support for", "a device that is not there; the CPU does"),
    ("No CUDA GPUs", "a device that is not there; the CPU does"),
)


def meaning(error: BaseException, limit: int = 400) -> str:
    """What an error of exporting says, in our words where we know them."""
    text = str(error)
    for part, words in _MEANINGS:
        if part in text:
            return words
    return f"{type(error).__name__}: {text}".strip().split("\n\n")[0][:limit]
