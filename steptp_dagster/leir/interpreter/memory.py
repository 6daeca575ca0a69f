"""Memory of the reference interpreter: cells that know whether they were written, and by whom.

A *location* is ``(tensor name, key)``; the key of a ``g`` tensor is its subscript, that of an
``l`` or ``s`` tensor begins with the launch and the block and thread that own the instance.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from steptp_dagster.leir.interpreter.faults import Fault, Log
from steptp_dagster.leir.interpreter.values import Value
from steptp_dagster.leir.walk import Path

Key = tuple[int, ...]
Location = tuple[str, Key]
#: Statement that wrote the inputs, parameters and constants.
BEFORE: Path = (-1,)
_SEVERAL = object()
_Touch = tuple[object, bool, Path | None]


@dataclass(slots=True)
class LoopState:
    """One loop of the program; ``seen`` and ``touchers`` last for one instance of the loop.

    ``checked``: a P, V or B loop, whose iterations may not conflict. ``seen`` maps a location to
    the iteration that touched it (or _SEVERAL), whether it was written, and the statement whose
    block reduction was all that touched it. ``accumulators``: the pure updates whose outermost
    reduction loop this is; ``touchers``: the statements that touched a location. ``steady``: for
    a thread loop inside serial loops of one launch, the places of the launch's loops and of the
    ``B`` loops around it; ``history`` is ``seen`` for all its instances under the same of these.
    """

    name: str
    checked: bool
    now: int = 0
    accumulators: "list[StatementState]" = field(default_factory=list)
    seen: dict[Location, "_Touch"] = field(default_factory=dict)
    touchers: dict[Location, set[Path]] = field(default_factory=dict)
    steady: tuple[int, ...] | None = None
    history: dict[tuple[Key, Location], "_Touch"] = field(default_factory=dict)


@dataclass(slots=True)
class StatementState:
    """What is known of one equation while it runs.

    ``slots`` are the enclosing loops with their places in the environment. ``exempt`` holds, for
    a pure update, the thread loops over which it is a block reduction (by identity).
    """

    path: Path
    slots: tuple[tuple[str, int], ...]
    launch: tuple[int, ...]
    blocks: tuple[int, ...]
    exempt: tuple[LoopState, ...] = ()
    started: set[Location] = field(default_factory=set)
    continued: set[Location] = field(default_factory=set)


@dataclass(slots=True)
class Memory:
    """Cells of all tensors, and the checks made at every access.

    ``shapes`` holds the shapes of the known variables. ``env`` holds the values of the loop
    indices, ``active`` the running loops that check something.
    """

    shapes: dict[str, tuple[int, ...]]
    ranks: dict[str, int]
    poison: dict[str, Value]
    log: Log
    env: list[int]
    cells: dict[str, dict[Key, Value]] = field(default_factory=dict)
    writers: dict[Location, Path] = field(default_factory=dict)
    active: list[LoopState] = field(default_factory=list)
    by_block: dict[tuple[Key, Location], dict[tuple[Key, Key], bool]] = field(default_factory=dict)
    in_every_launch: int = 0
    pending: list[tuple[str, Key, Fault]] = field(default_factory=list)

    def fault(self, kind: str, message: str, statement: StatementState, subject: str) -> None:
        """Record a fault at the present iteration."""
        if self.log.new(kind, statement.path, subject):
            self.log.add(Fault(kind, message, statement.path, self.iteration(statement)))

    def iteration(self, statement: StatementState) -> tuple[tuple[str, int], ...]:
        """The values of the loops around a statement."""
        return tuple((name, self.env[slot]) for name, slot in statement.slots)

    def missing(self, name: str, key: Key, statement: StatementState) -> Value:
        """A read of a cell that nobody wrote: record why, and give poison."""
        subscript = self._subscript(name, key)
        shape = self.shapes.get(name)
        if any(i < 0 for i in subscript) or (shape is not None and not _inside(subscript, shape)):
            message = f"reads {name} at {list(subscript)}, outside {_shape_text(shape)}"
            self.fault("out-of-bounds", message, statement, name)
        elif shape is not None:
            message = f"reads {name} at {list(subscript)}, which is not written yet"
            self.fault("unwritten-read", message, statement, name)
        elif self.log.new("unwritten-read", statement.path, name):
            message = f"reads {name} at {list(subscript)}, which is not written yet"
            fault = Fault("unwritten-read", message, statement.path, self.iteration(statement))
            self.pending.append((name, subscript, fault))
        return self.poison[name]

    def write(self, name: str, key: Key, value: Value, statement: StatementState) -> None:
        """Store a value, unless the location lies outside the tensor."""
        subscript = self._subscript(name, key)
        shape = self.shapes.get(name)
        if any(i < 0 for i in subscript) or (shape is not None and not _inside(subscript, shape)):
            message = f"writes {name} at {list(subscript)}, outside {_shape_text(shape)}"
            self.fault("out-of-bounds", message, statement, name)
            return
        self.cells[name][key] = value
        self.writers[name, key] = statement.path

    def start_update(self, name: str, key: Key, identity: Value, statement: StatementState) -> None:
        """First touch of a pure update: begin at the identity, or go on from what is there."""
        location = (name, key)
        if location in statement.started:
            if self.writers.get(location, statement.path) != statement.path:
                message = f"{name}: another statement writes between the touches of this update"
                self.fault("mixed-first-touch", message, statement, name)
            return
        if location in statement.continued:
            return
        if key in self.cells[name]:
            statement.continued.add(location)
        else:
            self.write(name, key, identity, statement)
            statement.started.add(location)
        if statement.started and statement.continued:
            message = f"{name}: some elements were written before this update, some were not"
            self.fault("mixed-first-touch", message, statement, name)

    def touch(self, name: str, key: Key, write: bool, statement: StatementState, own: bool) -> None:
        """Check an access against the others of its loops; ``own``: a pure update's target."""
        location = (name, key)
        for loop in self.active:
            if loop.accumulators:
                self._check_partial(loop, location, statement)
            if loop.checked:
                by = statement.path if own and _among(loop, statement.exempt) else None
                self._check_conflict(loop, location, write, by, statement)

    def touch_across_blocks(
        self, name: str, key: Key, write: bool, statement: StatementState
    ) -> None:
        """Within a launch, accesses to a ``g`` location agree on every block axis.

        Outside the loops of an axis is a place of its own: no block there runs before the others.
        """
        env = self.env
        launch = tuple(env[slot] for slot in statement.launch)
        block = tuple(-1 if slot < 0 else env[slot] for slot in statement.blocks)
        # A statement outside some launch loops is compared with all launches that it is beside.
        places = self.by_block.setdefault((launch[: self.in_every_launch], (name, key)), {})
        wrote = places.get((launch, block))
        if wrote is None or (write and not wrote):
            places[launch, block] = write
            for (other_launch, other_block), other_wrote in places.items():
                beside = all(a == b for a, b in zip(launch, other_launch, strict=False))
                if (write or other_wrote) and beside and block != other_block:
                    message = f"{name} at {list(key)} is shared between blocks, one writes"
                    self.fault("cross-block", message, statement, name)
                    return

    def settle_pending(self) -> None:
        """Tell reads beyond an intermediate's final shape from reads of unwritten elements."""
        for name, subscript, fault in self.pending:
            shape = self.inferred_shape(name)
            if shape is None or _inside(subscript, shape):
                self.log.add(fault)
                continue
            message = f"reads {name} at {list(subscript)}, outside {_shape_text(shape)}"
            self.log.add(Fault("out-of-bounds", message, fault.path, fault.iteration))

    def inferred_shape(self, name: str) -> tuple[int, ...] | None:
        """Largest written subscript plus 1 per dimension; None if nothing was written."""
        keys: Iterable[Key] = self.cells[name]
        subscripts = [self._subscript(name, key) for key in keys]
        if not subscripts:
            return None
        return tuple(max(s[d] for s in subscripts) + 1 for d in range(self.ranks[name]))

    def _subscript(self, name: str, key: Key) -> Key:
        return key[len(key) - self.ranks[name] :]

    def _check_partial(
        self, loop: LoopState, location: Location, statement: StatementState
    ) -> None:
        """An implicitly started accumulator is nobody else's while it accumulates."""
        touchers = loop.touchers.setdefault(location, set())
        touchers.add(statement.path)
        if len(touchers) == 1:
            return
        for update in loop.accumulators:
            if update.path in touchers and location in update.started:
                others = sorted(touchers - {update.path})
                message = (
                    f"{location[0]} at {list(location[1])} starts implicitly, and the statement "
                    f"at {list(others[0])} touches it inside loop {loop.name}"
                )
                self.fault("partial-value", message, update, location[0])

    def _check_conflict(
        self,
        loop: LoopState,
        location: Location,
        write: bool,
        by: Path | None,
        statement: StatementState,
    ) -> None:
        now, clash = _after(loop.seen.get(location), loop.now, write, by)
        loop.seen[location] = now
        subject = f"{loop.name} {location[0]}"
        if clash:
            message = (
                f"iterations of {loop.name} conflict: {location[0]} at {list(location[1])} "
                "is touched by several, one writes"
            )
            self.fault("loop-conflict", message, statement, subject)
        if loop.steady is not None:
            place = (tuple(self.env[slot] for slot in loop.steady), location)
            loop.history[place], moved = _after(loop.history.get(place), loop.now, write, by)
            if moved and not clash:
                message = (
                    f"{location[0]} at {list(location[1])} passes between threads of {loop.name} "
                    "from one iteration of a serial loop around it to another"
                )
                self.fault("thread-communication", message, statement, subject)


def _after(
    before: _Touch | None, iteration: int, write: bool, by: Path | None
) -> tuple[_Touch, bool]:
    """The record of a location after one more touch, and whether that is a conflict."""
    if before is None:
        return (iteration, write, by), False
    first, wrote, reducing = before
    same = by if by == reducing else None
    if first == iteration:
        return (first, write or wrote, same), False
    return (_SEVERAL, write or wrote, same), (write or wrote) and same is None


def _among(loop: LoopState, loops: tuple[LoopState, ...]) -> bool:
    return any(loop is other for other in loops)


def _inside(subscript: Key, shape: tuple[int, ...]) -> bool:
    return all(0 <= i < extent for i, extent in zip(subscript, shape, strict=True))


def _shape_text(shape: tuple[int, ...] | None) -> str:
    return "its shape" if shape is None else f"the shape {list(shape)}"
