"""What is asked of an isolated process: plain data in, plain data out.

``inspect`` executes a file and lists its programs; ``sample`` describes one program at its given
shapes, ``judge`` tells whether it works, ``derive`` looks for more; ``translated`` gives LEIR,
compared with PyTorch by a function of the caller's; ``screened`` judges an original without any of
the user's code.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from random import Random
from typing import Any, Final

from steptp_dagster.leir.fileform import read, write
from steptp_dagster.translate.export import DTYPES
from steptp_dagster.translate.reference import Reference
from steptp_dagster.translate.translate import (
    SAME_AS_COMPOSED,
    Translation,
    TranslationRefusal,
    translate,
)
from steptp_dagster.users.constants import constants, substituted
from steptp_dagster.users.forms import (
    Declared,
    Executed,
    OutOfMemory,
    accepted,
    discover,
    execute,
    out_of_memory,
)
from steptp_dagster.users.inputs import (
    PRECISIONS,
    Example,
    cast,
    precision,
    rows_kept,
    smallest,
    without_memory,
)
from steptp_dagster.users.refusal import Refused
from steptp_dagster.users.shapes import ROWS, candidates
from steptp_dagster.verify.budget import too_large

Request = Mapping[str, Any]
Reply = dict[str, Any]
#: What comparing a translation with its module gives, as plain data.
Compare = Callable[[Reference], Reply]
#: A program in a form by name, from what translates it (the argument: with views stored).
InForm = Callable[
    [Callable[[bool], Translation | TranslationRefusal], str], Translation | TranslationRefusal
]

#: Most shapes that are tried for one program, and most entries of SHAPES.
TRIES: Final = 16
ENTRIES: Final = 64
#: What PyTorch says where it needs the elements of a tensor that has none.
_NO_ELEMENTS: Final = "DataDependentOutputException"


def inspect(request: Request) -> Reply:
    """The programs of a file: names in the file, and forms."""
    programs = discover(_executed(request, request["text"]))
    return {"programs": [{"name": p.name, "form": p.form} for p in programs.values()]}


def sample(request: Request) -> Reply:
    """The given samples of one program: its example (``given``), or the entries of ``SHAPES``."""
    file, given = _built(request, request["text"], {})
    entries = _entries(file, request)
    if entries is None:
        return {"samples": [_described(request, {}, request["text"], given)], "given": True}
    samples = []
    for shape in entries:
        text = _text(request, file, shape)
        _, given = _built(request, text, shape)
        samples.append(_described(request, shape, text, given))
    return {"samples": samples, "given": False}


def judge(request: Request) -> Reply:
    """Whether the example of a program is translated, and whether it can be executed."""
    _, given = _built(request, request["text"], {})
    found = _translated(request, given)
    if isinstance(found, TranslationRefusal):
        return {"translated": False, "executable": False}
    return {"translated": True, "executable": not too_large(found.signed)}


def derive(request: Request) -> Reply:
    """Up to ``count`` further samples that are translated and small enough to be executed."""
    text = request["text"]
    _, given = _built(request, text, {})
    seen = [_form(given)]
    rows = next((t.shape[0] for t in given.tensors if t.dim()), None)
    samples: list[Reply] = []
    real = {**request, "fake": ""}
    tried = candidates(constants(text), rows, Random(request["seed"]))
    for _, shape in zip(range(TRIES), tried, strict=False):
        if len(samples) == request["count"]:
            break
        changed = substituted(text, {n: v for n, v in shape.items() if n != ROWS})
        try:
            _, given = _built(real, changed, shape)
            found = _translated(real, given) if _form(given) not in seen else None
            if isinstance(found, Translation) and not too_large(found.signed):
                seen.append(_form(given))
                samples.append(_described(request, shape, changed, given))
        except (Refused, OutOfMemory):
            continue
    return {"samples": samples}


def translated(request: Request, compare: Compare, in_form: InForm) -> Reply:
    """The LEIR of one sample with what comparing it gave, or the translator's refusal.

    Where ``compared`` is null, ``unexecuted`` says why. ``plain`` is what is screened: the composed
    form.
    """
    _, given = _built(request, request["text"], request["shape"])
    if request["dtype"] and not _is(given, request["dtype"]):
        given = cast(given, request["dtype"])
    found = in_form(lambda naive: _translated(request, given, naive=naive), request["form"])
    if isinstance(found, TranslationRefusal):
        return {"refusal": _refusal(found, given)}
    composed = _translated(request, given) if request["form"] != "composed" else found
    if request["twin"] and composed == found:
        return {"refusal": _refusal(SAME_AS_COMPOSED, given)}
    reply = {
        "leir": write(found.signed),
        "plain": write((composed if isinstance(composed, Translation) else found).signed),
        "names": {name: given.shown(of) for name, of in found.names.items()},
        "origins": [
            {"operator": o.operator, "nests": [o.first, o.last], "location": o.location}
            for o in found.origins
        ],
        "compared": None,
        "unexecuted": too_large(found.signed),
    }
    if reply["unexecuted"]:
        return reply
    if request["fake"]:
        raise OutOfMemory
    try:
        return {**reply, "compared": compare(Reference(given.module, given.tensors, found))}
    except Exception as failed:
        if out_of_memory(failed):
            if not request["last"]:
                raise OutOfMemory from failed
            return {**reply, "unexecuted": "comparing it exceeds the memory limit"}
        message = f"could not be compared with PyTorch: {type(failed).__name__}: {failed}"[:400]
        return {"refusal": _refusal(TranslationRefusal("comparison", "", message, ""), given)}


def screened(request: Request) -> Reply:
    """Why no steps should start from a program, given in the file form."""
    from steptp_dagster.verify.screen import screen

    return {"screens": list(screen(read(request["leir"]).signed))}


def warm_up() -> None:
    """Translate a layer, so that everything that translating loads is there."""
    given = smallest()
    translate(given.module, given.tensors)


def _executed(request: Request, text: str) -> Executed:
    return execute(request["path"], request["label"], text, request["seed"])


def _built(request: Request, text: str, shape: Mapping[str, int]) -> tuple[Executed, Example]:
    """The file executed and one program made; without memory for its tensors if ``fake``."""
    with without_memory() if request["fake"] == "all" else nullcontext():
        file = _executed(request, text)
        if request["fake"] == "inputs":
            file = replace(file, around_inputs=without_memory)
        given = _declared(discover(file), request["program"], file).make(shape)
        if ROWS in shape:
            given = rows_kept(given, shape[ROWS])
    return file, given


def _declared(programs: Mapping[str, Declared], name: str, file: Executed) -> Declared:
    if name not in programs:
        message = f"has no program {name!r} any more; it has {', '.join(map(repr, programs))}"
        raise Refused("no-program", message, file.label)
    return programs[name]


def _translated(
    request: Request, given: Example, *, naive: bool = False
) -> Translation | TranslationRefusal:
    """Translate; whatever the user's module provokes beyond that is a refusal too."""
    try:
        found = translate(given.module, given.tensors, naive=naive)
    except Exception as error:
        if out_of_memory(error):
            raise OutOfMemory from error
        message = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        found = TranslationRefusal("translation", "", message, "")
    if isinstance(found, TranslationRefusal):
        lacking = request["fake"] and _NO_ELEMENTS in found.message
        if lacking or out_of_memory(RuntimeError(found.message)):
            raise OutOfMemory
    return found


def _refusal(found: TranslationRefusal, given: Example) -> Reply:
    named = replace(found, argument=given.shown(found.argument))
    return {"operator": found.operator, "told": str(named)}


def _entries(file: Executed, request: Request) -> list[dict[str, int]] | None:
    """What ``SHAPES`` says for the program, or None without it. Raises Refused."""
    held = getattr(file.content, "SHAPES", None)
    if isinstance(held, Mapping):
        held = held.get(request["program"])
    if held is None:
        return None

    def refuse(message: str) -> Refused:
        return Refused("bad-shapes", f"SHAPES {message}", file.label)

    if not isinstance(held, Sequence) or not held or len(held) > ENTRIES:
        raise refuse(f"must be a list of 1 to {ENTRIES} dicts, or a dict from programs to such")
    known = constants(request["text"]).keys() | accepted(file)
    for entry in held:
        if not isinstance(entry, Mapping) or not entry:
            raise refuse(f"has the entry {entry!r}, which is no dict with names of extents")
        for name, value in entry.items():
            if name not in known:
                raise refuse(
                    f"names {name!r}, which is neither a whole number at the top of the file nor "
                    "an argument of a function that gives inputs"
                )
            if type(value) is not int or not 0 <= value < 2**31:
                raise refuse(f"gives {name} the value {value!r}; whole numbers from 0 on do")
    return [dict(entry) for entry in held]


def _text(request: Request, file: Executed, shape: Mapping[str, int]) -> str:
    """The file's text with the shape's constants; what functions take is passed to them."""
    text: str = request["text"]
    known = constants(text).keys() - accepted(file)
    return substituted(text, {n: v for n, v in shape.items() if n in known})


def _form(given: Example) -> list[tuple[int, ...]]:
    """Shapes of inputs, parameters and buffers: samples that are alike in them are one."""
    tensors = [*given.tensors, *given.module.parameters(), *given.module.buffers()]
    return [tuple(t.shape) for t in tensors]


def _is(given: Example, dtype: str) -> bool:
    own, uniform = precision(given)
    return own == dtype and uniform


def _described(request: Request, shape: Mapping[str, int], text: str, given: Example) -> Reply:
    """A sample as data: its inputs in every precision that is asked for."""
    own, uniform = precision(given)
    wanted = request["dtypes"]
    if own is None or not uniform or own not in PRECISIONS:
        chosen = [own if own in PRECISIONS else wanted[0]]
    else:
        chosen = list(wanted)
    return {
        "shape": dict(shape),
        "text": text,
        "constants": {name: repr(value) for name, value in given.constants.items()},
        "dtypes": chosen,
        "cast": own is not None and uniform,
        "inputs": [
            {
                "name": name,
                "shape": list(tensor.shape),
                "dtype": DTYPES.get(tensor.dtype, str(tensor.dtype)),
            }
            for name, tensor in zip(given.names, given.tensors, strict=True)
        ],
    }
