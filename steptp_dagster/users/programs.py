"""What a file of a user gives, as typed data: its programs, their samples, their translations.

Everything that executes the file happens elsewhere (``isolation``); nothing is executed here.
"""

import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from steptp_dagster.leir.fileform import FileFormError, read
from steptp_dagster.leir.parser import ParseError
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.users.files import UserFile
from steptp_dagster.users.isolation import Isolation, Limits, Reply
from steptp_dagster.users.refusal import UserRefusal

T = TypeVar("T")

#: Reason that says more of a machine and its load than of a file.
LATE: Final = "timed-out"


@dataclass(frozen=True, slots=True)
class UserProgram:
    """A program that a file has: its name in the file (``""``: the main one), and its form."""

    name: str
    form: str


@dataclass(frozen=True, slots=True)
class UserSample:
    """One sample of a program: its extents, the text that has them, dtypes, inputs, constants.

    ``inputs`` have ``name``, ``shape`` and ``dtype`` as given; where ``cast``, all floats become
    the working precision.
    """

    shape: Mapping[str, int]
    text: str
    dtypes: tuple[str, ...]
    inputs: tuple[Mapping[str, Any], ...]
    constants: Mapping[str, str]
    cast: bool


@dataclass(frozen=True, slots=True)
class UserSamples:
    """The samples of a program; ``late`` where with more time there might be others."""

    samples: tuple[UserSample, ...]
    late: UserRefusal | None = None


@dataclass(frozen=True, slots=True)
class UserTranslation:
    """LEIR of a sample, and what comparing it with PyTorch gave.

    ``plain`` is the file form of the program that is screened, without what its form put in.
    ``figures`` are columns of the table ``translations``; None where it was not executed, which
    ``unexecuted`` explains. ``objection`` is a named reason, and words, against using it.
    """

    signed: SignedProgram
    plain: str
    names: Mapping[str, str]
    origins: tuple[Mapping[str, Any], ...]
    figures: Mapping[str, Any] | None
    objection: tuple[str, str] | None
    unexecuted: str

    @property
    def fidelity(self) -> float | None:
        """The largest normalised difference from PyTorch in float64, if it was executed."""
        return None if self.figures is None else float(self.figures["fidelity"])


@dataclass(frozen=True, slots=True)
class Untranslated:
    """The translator's refusal, or ``comparison`` where the program could not be compared."""

    operator: str
    message: str


@dataclass(frozen=True, slots=True)
class Workbench:
    """Where files are looked into: an isolation, limits, whether prints go to standard error."""

    isolation: Isolation
    limits: Limits
    seed: int = 0
    echo: bool = False

    def programs(self, file: UserFile, text: str) -> tuple[UserProgram, ...] | UserRefusal:
        """The programs of a file with this text."""
        reply = self._ask(file, "inspect", text)
        if isinstance(reply, UserRefusal):
            return reply
        return _told(
            file,
            lambda: tuple(UserProgram(str(p["name"]), str(p["form"])) for p in reply["programs"]),
        )

    def samples(
        self, file: UserFile, text: str, program: str, dtypes: Sequence[str], count: int
    ) -> UserSamples | UserRefusal:
        """The samples of one program: those that the file names, or its example and others.

        Up to ``count`` of them can be executed; an example that is too large comes on top.
        """
        wanted = {"program": program, "dtypes": list(dtypes)}
        reply = self._ask(file, "sample", text, **wanted)
        if isinstance(reply, UserRefusal):
            return reply

        def given() -> UserSamples:
            found = [_sample(s) for s in reply["samples"]]
            if not reply["given"]:
                return UserSamples(tuple(found))
            judged = self._ask(file, "judge", text, **wanted)
            # An example that is too much for the limits is one more that is too large.
            large = isinstance(judged, UserRefusal)
            if not isinstance(judged, UserRefusal):
                if not judged["translated"]:
                    return UserSamples(tuple(found))
                large = not judged["executable"] or bool(judged["fake"])
            more = count if large else count - 1
            further = self._ask(file, "derive", text, count=more, **wanted) if more else None
            # Other extents are our idea: where they do not work, the file is not to blame.
            if further is not None and not isinstance(further, UserRefusal):
                found += [_sample(s) for s in further["samples"]]
            late = (r for r in (judged, further) if isinstance(r, UserRefusal))
            return UserSamples(tuple(found), next((r for r in late if r.reason == LATE), None))

        return _told(file, given)

    def translation(
        self,
        file: UserFile,
        text: str,
        program: str,
        shape: Mapping[str, int],
        dtype: str = "",
        *,
        form: str = "composed",
        twin: bool = False,
    ) -> UserTranslation | Untranslated | UserRefusal:
        """The LEIR of one sample in one precision (``""``: as it is given).

        ``form`` is one of ``schemas.FORMS``; with ``twin`` one that is no other than the composed
        one is refused.
        """
        arguments = {"program": program, "shape": dict(shape), "dtype": dtype}
        reply = self._ask(file, "translate", text, form=form, twin=twin, **arguments)
        if isinstance(reply, UserRefusal):
            return reply

        def given() -> UserTranslation | Untranslated:
            if "refusal" in reply:
                refused = reply["refusal"]
                return Untranslated(str(refused["operator"]), _plain(str(refused["told"]), file))
            origins, compared = reply["origins"], reply["compared"]
            against = compared["objection"] if compared else None
            return UserTranslation(
                read(str(reply["leir"])).signed,
                str(reply["plain"]),
                {str(name): str(of) for name, of in reply["names"].items()},
                tuple({**o, "location": _plain(str(o["location"]), file)} for o in origins),
                compared["figures"] if compared else None,
                (str(against[0]), str(against[1])) if against else None,
                str(reply["unexecuted"]),
            )

        return _told(file, given)

    def screens(self, leir: str) -> tuple[str, ...]:
        """Why no steps should start from a program in the file form (``verify.screen``).

        What goes wrong while it is found out is such a reason: ``screen-timed-out`` and so on.
        """
        reply = self.isolation.ask(None, "screen", self.limits, leir=leir)
        if isinstance(reply, UserRefusal):
            return (f"screen-{reply.reason}",)
        return tuple(str(s) for s in reply["screens"])

    def _ask(
        self, file: UserFile, task: str, text: str, **arguments: object
    ) -> Reply | UserRefusal:
        return self.isolation.ask(
            file, task, self.limits, echo=self.echo, text=text, seed=self.seed, **arguments
        )


def _told(file: UserFile, made: Callable[[], T]) -> T | UserRefusal:
    """A reply made into values; users' code shares a process with what replies."""
    try:
        return made()
    except (FileFormError, ParseError, LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        return UserRefusal("crashed", f"interfered with its own process ({what})", file.name)


def _sample(told: Mapping[str, Any]) -> UserSample:
    return UserSample(
        told["shape"],
        str(told["text"]),
        tuple(told["dtypes"]),
        tuple(told["inputs"]),
        told["constants"],
        bool(told["cast"]),
    )


def _plain(text: str, file: UserFile) -> str:
    """The text with the names of files instead of their places on this machine."""
    for folder in (str(file.path.parent), sysconfig.get_paths()["purelib"]):
        text = text.replace(f"{folder}/", "")
    return text
