"""Profiles: everything a build depends on apart from code, as typed, checked, frozen values.

A profile is a YAML file; ``default`` and ``tiny`` come with the library (``profiles/``), others
are named by path. The environment variable ``STEPTP_USER_PROGRAMS`` names a folder of users'
programs (relative to the current one) in place of that of the profile.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from steptp_dagster.dataset.ids import Json, digest
from steptp_dagster.dataset.mapping import BadMapping, build
from steptp_dagster.dataset.overrides import overridden
from steptp_dagster.dataset.policy import ENDLESS, BalancePlan, positive
from steptp_dagster.dataset.yaml_text import plain_data
from steptp_dagster.paths import OVERRIDES_VARIABLE, USERS_VARIABLE
from steptp_dagster.users.files import UserFile, file_of, files_in

FOLDER = Path(__file__).resolve().parent / "profiles"
POLICIES = FOLDER.with_name("policies")

Dtype = Literal["f16", "bf16", "f32", "f64"]
#: How a program is translated: views composed into subscripts, or each a nest of its own; or
#: composed, with intermediates inlined or code put in that is dead or repeated (``injectors``).
Form = Literal["composed", "naive", "inlined", "dead-code", "repeated-code"]
#: What steps can be verified on; ``verify.record.TARGETS``, which a test compares.
Target = Literal["llvm", "cuda:sm_80", "cuda:sm_90"]
#: What a record asks (``schemas.TASKS``).
Task = Literal["single", "multi", "trajectory", "negative"]
#: How records show programs.
Language = Literal["leir", "tir", "cuda"]


class ProfileError(ValueError):
    """A profile that cannot be used; the message names file, setting, found and wanted."""


def _distinct(what: str, items: Sequence[str]) -> None:
    if not items or "" in items:
        raise ValueError(f"{what} must not be empty, nor a name of them")
    doubled = sorted({i for i in items if items.count(i) > 1})
    if doubled:
        raise ValueError(f"{what} named twice: {', '.join(doubled)}")


def _seed(seed: int) -> None:
    if not 0 <= seed < ENDLESS:
        raise ValueError(f"seed must be at least 0 and below {ENDLESS}, not {seed}")


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """One source program: its name, how many shape samples of it are taken, and in which forms.

    Without ``forms`` those of the profile count. ``large`` samples of paper-like sizes come on
    top: too large to run, they are judged statically and on siblings (``siblings``).
    """

    name: str
    samples: int = 1
    large: int = 0
    forms: tuple[Form, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse nothing to do."""
        positive(samples=self.samples)
        if not 0 <= self.large < ENDLESS:
            raise ValueError(f"large must be at least 0 and below {ENDLESS}, not {self.large}")
        if self.forms is not None:
            _distinct("forms", self.forms)


@dataclass(frozen=True, slots=True)
class LibraryPlan:
    """Programs of the library that ``programs`` does not name: all, or the published ones.

    ``samples``, ``large`` and ``forms`` as in ``ProgramPlan``; those in ``without`` are left out.
    """

    which: Literal["all", "published"] = "all"
    samples: int = 1
    large: int = 0
    forms: tuple[Form, ...] | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what a plan of each program would refuse."""
        self.plan("each of them")

    def plan(self, name: str) -> ProgramPlan:
        """The plan of one of its programs."""
        return ProgramPlan(name, samples=self.samples, large=self.large, forms=self.forms)


@dataclass(frozen=True, slots=True)
class UserPlan:
    """Programs of users: the folder of their files, samples of each program, limits of one run.

    In a profile ``folder`` is relative to the profile's file, in one that was loaded it is
    absolute. Without ``files`` all program files of the folder count (``users.files``); without
    ``dtypes`` those of the profile. ``timeout_s`` and ``memory_mb`` bound whatever executes a file.
    """

    folder: str
    samples: int = 1
    dtypes: tuple[Dtype, ...] | None = None
    files: tuple[str, ...] | None = None
    timeout_s: float = 60.0
    memory_mb: int = 4096

    def __post_init__(self) -> None:
        """Refuse nothing to do, and files that are not in the folder."""
        positive(samples=self.samples, timeout_s=self.timeout_s, memory_mb=self.memory_mb)
        if self.dtypes is not None:
            _distinct("dtypes", self.dtypes)
        for name in self.files or ():
            if Path(name).name != name or not name.endswith(".py"):
                raise ValueError(f"files must be names of .py files in the folder, not {name!r}")

    @property
    def found(self) -> tuple[UserFile, ...]:
        """The files, of a plan that was loaded."""
        return tuple(file_of(Path(self.folder) / name) for name in self.files or ())


@dataclass(frozen=True, slots=True)
class StepPlan:
    """How many steps are taken.

    ``sites`` steps of each strategy from each source, chosen by hash (of those that ``sites_of``
    names as many as it says); then, ``depth`` times, ``chains`` results of each source become
    parents themselves, with ``chain_sites`` steps of each strategy, none of which may come back
    to a structure that its chain has been at. ``tokens`` is the longest program (in tokens) that
    a step may start from. Results of the strategies in ``prefer`` become parents before others,
    the first name first, so that steps which need others before them are reached. ``reasoning``
    is the style of the texts (``reasoning.style``): for training, or everything. ``trajectories``
    chains of every length from each source, chosen by hash, are judged as a whole; into
    ``negatives`` steps of each source mistakes are put, for candidates that are wrong.
    """

    sites: int = 4
    sites_of: dict[str, int] = field(default_factory=dict)
    depth: int = 1
    chains: int = 1
    chain_sites: int = 1
    tokens: int = 4000
    prefer: tuple[str, ...] = ()
    trajectories: int = 1
    negatives: int = 4
    reasoning: Literal["brief", "full"] = "brief"

    def __post_init__(self) -> None:
        """Refuse nothing to do."""
        positive(sites=self.sites, tokens=self.tokens)
        positive(**{f"sites_of.{name}": count for name, count in self.sites_of.items()})
        counts = (self.depth, self.chains, self.chain_sites, self.trajectories, self.negatives)
        if min(counts) < 0 or max(counts) >= ENDLESS:
            raise ValueError(
                "depth, chains, chain_sites, trajectories and negatives must be at least 0, below "
                f"{ENDLESS}"
            )


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """How steps are verified: targets, seed of the inputs, limits of one pair.

    ``llvm`` decides what is accepted and is always among the ``targets``. On the others the share
    ``cuda_share`` (0..1) of all pairs, chosen by hash, is built, and run where there is a GPU.
    """

    targets: tuple[Target, ...] = ("llvm",)
    seed: int = 0
    timeout_s: float = 30.0
    memory_mb: int = 4096
    cuda_share: float = 1.0

    def __post_init__(self) -> None:
        """Refuse targets without the one that decides, empty and endless limits."""
        _distinct("targets", self.targets)
        if self.target not in self.targets:
            raise ValueError(f"targets must name {self.target}: it decides what is accepted")
        if not 0 < self.cuda_share <= 1:
            raise ValueError("cuda_share must be in (0, 1]")
        _seed(self.seed)
        positive(timeout_s=self.timeout_s, memory_mb=self.memory_mb)

    @property
    def target(self) -> Target:
        """The target that decides what is accepted."""
        return "llvm"


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """What records are made, and how they are written.

    ``tasks`` are those of ``schemas.TASKS``. ``program`` is the language that records show
    programs in: LEIR, or, for comparison, TVM's script of them (``tir``) or CUDA (``cuda``).
    Without ``reasoning`` answers come without thoughts. ``answers`` is the largest number of steps
    of a multi-answer record.
    """

    tasks: tuple[Task, ...] = ("single", "multi", "trajectory", "negative")
    program: Language = "leir"
    reasoning: bool = True
    answers: int = 4

    def __post_init__(self) -> None:
        """Refuse no tasks, and multi-answer records of one answer."""
        _distinct("tasks", self.tasks)
        if not 2 <= self.answers < ENDLESS:
            raise ValueError(f"answers must be at least 2 and below {ENDLESS}, not {self.answers}")


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Shares of the splits, in programs; they sum to 1.

    Workloads that share a family, a program's structure, or at least the part ``near`` of their
    nests (``likeness``) go to one split.
    """

    train: float = 0.8
    validation: float = 0.1
    test: float = 0.1
    near: float = 0.6

    def __post_init__(self) -> None:
        """Refuse shares that are no partition."""
        shares = (self.train, self.validation, self.test)
        # Written so that NaN is refused too.
        if not (min(shares) >= 0 and abs(sum(shares) - 1) <= 1e-9):
            raise ValueError(f"the shares of the splits must sum to 1, not {sum(shares)}")
        if not 0 < self.near <= 1:
            raise ValueError(f"near must be above 0 and at most 1, not {self.near}")


@dataclass(frozen=True, slots=True)
class Profile:
    """A build: which programs, how many samples and steps, how verified, balanced and split.

    In ``usual`` shapes no extent is 1 that never is at paper-like sizes (``Source.sample``).
    """

    name: str
    seed: int
    dtypes: tuple[Dtype, ...]
    programs: tuple[ProgramPlan, ...] = ()
    library: LibraryPlan | None = None
    strategies: tuple[str, ...] | None = None
    steps: StepPlan = field(default_factory=StepPlan)
    verification: VerificationPlan = field(default_factory=VerificationPlan)
    records: RecordPlan = field(default_factory=RecordPlan)
    balance: BalancePlan = field(default_factory=BalancePlan)
    splits: SplitPlan = field(default_factory=SplitPlan)
    forms: tuple[Form, ...] = ("composed",)
    shapes: Literal["any", "usual"] = "any"
    user_programs: UserPlan | None = None

    def __post_init__(self) -> None:
        """Refuse empty and doubled lists."""
        _seed(self.seed)
        # A folder that was not looked into yet may have files, and so has the library.
        if self.program_names or (self.user_programs is None and self.library is None):
            _distinct("programs", self.program_names)
        _distinct("dtypes", self.dtypes)
        _distinct("forms", self.forms)
        if self.strategies is not None:
            _distinct("strategies", self.strategies)

    @property
    def program_names(self) -> tuple[str, ...]:
        """Names of the programs, in the profile's order; then the partitions of users' files."""
        users = () if self.user_programs is None else self.user_programs.found
        return (*(p.name for p in self.programs), *(file.partition for file in users))

    def user_file(self, program: str) -> UserFile | None:
        """The user's file whose partition it is, or None."""
        users = () if self.user_programs is None else self.user_programs.found
        return next((file for file in users if file.partition == program), None)

    def plan(self, program: str) -> ProgramPlan:
        """The plan of one program. Raises KeyError for one that the profile lacks."""
        return {p.name: p for p in self.programs}[program]

    def forms_of(self, program: str) -> tuple[Form, ...]:
        """The forms in which a program is translated. Raises KeyError as ``plan``."""
        return self.plan(program).forms or self.forms

    def settings(self) -> dict[str, Json]:
        """All settings as plain values, without where on this machine users' files lie."""
        told: dict[str, Json] = asdict(self)
        if self.user_programs is not None:
            folder = Path(self.user_programs.folder).name
            told["user_programs"] = asdict(replace(self.user_programs, folder=folder))
        return told


def load(name_or_path: str) -> Profile:
    """A packaged profile by name, or any by the path of its YAML file. Raises ProfileError."""
    path = Path(name_or_path)
    named = path.suffix not in (".yaml", ".yml")
    if named:
        path = FOLDER / f"{name_or_path}.yaml"
    try:
        if named and not path.exists():
            known = ", ".join(available())
            raise ProfileError(f"no profile {name_or_path!r}; there are {known}, or give a .yaml")
        data = _with_policy(_data_of(path), path.parent)
        data = overridden(data, os.environ.get(OVERRIDES_VARIABLE, "").splitlines())
        profile = _with_library(build(Profile, data))
        _check_strategies(profile)
        return _with_files(profile, path)
    except OSError as error:
        where = error.filename or path
        advice = f"a profile is one of {', '.join(available())}, or the path of a .yaml file"
        raise ProfileError(f"{where}: {error.strerror}; {advice}") from error
    except BadMapping as error:
        raise ProfileError(f"{path.name}: {error}") from error


def _data_of(path: Path) -> object:
    """What a YAML file says. Raises ProfileError with the file's name, OSError."""
    try:
        return plain_data(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path.name}: not UTF-8 text: {error.reason}") from error
    except BadMapping as error:
        raise ProfileError(f"{path.name}: {error}") from error


def _with_policy(data: object, folder: Path) -> object:
    """The data of a profile with the policy that its balance is based on filled in.

    Raises BadMapping, and ProfileError or OSError where the policy's file cannot be read.
    """
    if not isinstance(data, dict) or not isinstance(data.get("balance"), dict):
        return data
    balance = dict(data["balance"])
    base = balance.pop("base", None)
    if base is None:
        return data
    path = folder / str(base)
    if path.suffix not in (".yaml", ".yml"):
        path = POLICIES / f"{base}.yaml"
        if not path.exists():
            known = ", ".join(sorted(p.stem for p in POLICIES.glob("*.yaml")))
            raise BadMapping(
                f"balance.base: no policy {base!r}; there are {known}, or give a .yaml"
            )
    policy = _data_of(path)
    if not isinstance(policy, dict):
        raise BadMapping(f"balance.base: {path.name} has no settings")
    return {**data, "balance": {**policy, **balance}}


def _with_library(profile: Profile) -> Profile:
    """The profile with the programs of the library that it asks for. Raises BadMapping."""
    plan = profile.library
    if plan is None:
        return profile
    from steptp_dagster.sources.registry import SOURCES, WORKLOADS

    if unknown := [name for name in plan.without if name not in SOURCES]:
        raise BadMapping(
            f"library.without: no source program {unknown[0]!r}; `steptp sources` lists them"
        )
    left_out = {*profile.program_names, *plan.without}
    wanted = SOURCES if plan.which == "all" else WORKLOADS
    more = tuple(plan.plan(name) for name in wanted if name not in left_out)
    return replace(profile, programs=(*profile.programs, *more), library=None)


def _check_strategies(profile: Profile) -> None:
    """Raise BadMapping for a setting that names a strategy which nobody registered."""
    from steptp_dagster.strategies.registry import faults, strategies

    named = {
        "strategies": profile.strategies or (),
        "steps.prefer": profile.steps.prefer,
        "steps.sites_of": tuple(profile.steps.sites_of),
        "balance": profile.balance.named_strategies,
    }
    # A plug-in that does not load may have it; the build names the plug-in.
    if not any(named.values()) or faults():
        return
    known = strategies()
    for where, names in named.items():
        if unknown := [name for name in names if name not in known]:
            raise BadMapping(
                f"{where}: no strategy {unknown[0]!r}; one of {', '.join(sorted(known))}"
            )


def _with_files(profile: Profile, path: Path) -> Profile:
    """The profile with the files that its folder of users' programs has now."""
    plan, base = profile.user_programs, path.parent
    if named := os.environ.get(USERS_VARIABLE):
        plan, base = replace(plan or UserPlan(named), folder=named, files=None), Path.cwd()
    if plan is None:
        return profile
    folder = (base / Path(plan.folder).expanduser()).resolve()
    try:
        files = plan.files if plan.files is not None else [f.name for f in files_in(folder)]
    except OSError as error:
        place = f"${USERS_VARIABLE}" if named else f"{path.name}: user_programs"
        message = f"{place}: the folder {folder}: {error.strerror}; make it, or correct its path"
        raise ProfileError(message) from error
    found = replace(plan, folder=str(folder), files=tuple(files))
    if not found.files and not profile.programs:
        raise ProfileError(f"{path.name}: no programs, and no program file in {folder}")
    try:
        return replace(profile, user_programs=found)
    except ValueError as error:
        raise ProfileError(f"{path.name}: {error}") from error


def available() -> tuple[str, ...]:
    """Names of the packaged profiles."""
    return tuple(sorted(p.stem for p in FOLDER.glob("*.yaml")))


def settings_digest(*plans: Json) -> str:
    """Digest of plain settings, for keys of what depends on them."""
    return digest("settings", *plans)
