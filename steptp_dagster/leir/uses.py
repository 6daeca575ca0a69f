"""Every read and write of one top-level nest: loops, path condition, subscripts as forms.

A ``Use`` is one access to one tensor by one equation, under the condition on which it really
happens: the equation's guard and, for reads, the conditions of the ``if_then_else`` branches
around it.

``l`` and ``s`` tensors exist once per thread or block and launch. Their uses carry extra leading
coordinates that say which instance is meant: the launch loops' indices, then the block axes, and
for ``l`` the thread axes. With them such tensors are ordinary arrays, and no analysis needs to
know about threads.

The launch loops of a top-level nest are the loops that enclose all its ``B`` loops.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from steptp_dagster.leir.affine import Bounds, Form, Interval, Opaque, index, is_opaque
from steptp_dagster.leir.ast import (
    AXES,
    BLOCK_AXES,
    Access,
    Binary,
    Call,
    Equation,
    Expr,
    Index,
    Int,
    Loop,
    Nest,
)
from steptp_dagster.leir.conversion import Converter, TableReader
from steptp_dagster.leir.formulas import (
    TRUE,
    Formula,
    conjunction,
    depends_on_data,
    narrowed,
    negation,
)
from steptp_dagster.leir.walk import Path, children, equations_in

if TYPE_CHECKING:  # what later analyses keep here
    from steptp_dagster.leir.dependence import Carried
    from steptp_dagster.leir.regions import Region
    from steptp_dagster.leir.updates import PureForm, Update

Role = Literal["target", "value", "guard"]
_UNKNOWN_VALUE: Final[Interval] = (-(1 << 63), (1 << 63) - 1)
#: Bits of ``Statement.order`` that count the equations of one nest.
_PLACES: Final = 32


@dataclass(slots=True, eq=False)
class LoopRef:
    """One loop of one nest; compared by identity. ``depth`` is its place among the nest's loops.

    Never changed; not frozen, since thousands are made in a second.
    """

    loop: Loop
    path: Path
    depth: int

    @property
    def name(self) -> str:
        """The index."""
        return self.loop.index


Chain = tuple[LoopRef, ...]


@dataclass(slots=True, eq=False)
class Statement:
    """One equation with its place: ``order`` grows in text order. Never changed.

    ``chain`` holds the enclosing loops, outermost first; the first ``launch`` of them are launch
    loops. ``axes`` maps hardware axes to the index bound to them. ``bounds`` are the loops' index
    ranges.
    """

    order: int
    path: Path
    chain: Chain
    equation: Equation
    launch: int
    axes: dict[str, str]
    bounds: Bounds
    guard: Formula


@dataclass(eq=False, slots=True)
class Use:
    """One access to a tensor; compared by identity.

    ``forms`` are the coordinates: first ``private`` coordinates that select the instance of an
    ``l`` or ``s`` tensor, then the subscripts. ``formula`` is the path condition.
    """

    statement: Statement
    access: Access
    write: bool
    role: Role
    formula: Formula
    forms: tuple[Form, ...]
    private: int
    #: Where a write goes while some indices stand still (``regions``); None where not asked.
    regions: "dict[frozenset[str], Region | None] | None" = field(default=None, repr=False)
    _bounds: Bounds | None = field(default=None, repr=False)
    _opaque: bool | None = field(default=None, repr=False)
    _data: bool | None = field(default=None, repr=False)

    @property
    def tensor(self) -> str:
        """The tensor's name."""
        return self.access.name

    @property
    def chain(self) -> Chain:
        """The enclosing loops."""
        return self.statement.chain

    @property
    def subscripts(self) -> tuple[Form, ...]:
        """The coordinates that are written in the program."""
        return self.forms[self.private :]

    @property
    def always(self) -> bool:
        """Whether nothing but the loops says when the access happens."""
        return self.formula is TRUE or self.formula == TRUE

    @property
    def bounds(self) -> Bounds:
        """Intervals of the indices where the access happens."""
        if self._bounds is None:
            base = self.statement.bounds
            self._bounds = base if self.always else narrowed(base, self.formula)
        return self._bounds

    @property
    def opaque(self) -> bool:
        """Whether some coordinate is known only by an interval."""
        if self._opaque is None:
            self._opaque = any(is_opaque(f) for f in self.forms)
        return self._opaque

    @property
    def on_data(self) -> bool:
        """Whether it depends on tensor values if the access happens."""
        if self._data is None:
            self._data = not self.always and depends_on_data(self.formula)
        return self._data


def common_loops(left: Chain, right: Chain) -> int:
    """How many leading loops two places share."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a is not b:
            break
        count += 1
    return count


class NestUses:
    """The statements and uses of the top-level nest that stands at ``place``, in text order.

    They depend on the nest, its place and what ``table`` says of integer tensors alone, so that
    programs that share a nest may share them.
    """

    def __init__(self, nest: Nest, place: int, table: TableReader) -> None:
        self.nest = nest
        self.place = place
        self._table = table
        self.statements: list[Statement] = []
        self.uses: list[Use] = []
        #: Uses of each tensor, and writes of each tensor that is written here.
        self.by_tensor: dict[str, list[Use]] = {}
        self.writes: dict[str, list[Use]] = {}
        #: Uses of each equation: the target first, then reads from left to right.
        self.by_statement: dict[Path, list[Use]] = {}
        #: Divisors of integer divisions that are no literals, as uses whose only form they are.
        self.divisors: list[Use] = []
        #: The loops of each nest, by the nest's path.
        self.loops_of: dict[Path, Chain] = {}
        #: What loops carry (``dependence``) and what equations do but for how they start
        #: (``updates``).
        self.carried: dict[LoopRef, Carried] = {}
        self.own_updates: dict[Path, Update] = {}
        self.own_forms: dict[Path, PureForm | None] = {}
        self._touching: dict[Path, list[Use]] = {}
        self._converter = Converter(Bounds({}), table)
        self._visit(nest, (place,), (), len(_launch(nest)), {}, self._converter)

    def under(self, path: Path) -> list[Use]:
        """Uses by the equations at or below ``path``, which lies in this nest."""
        n = len(path)
        if n == 1:
            return list(self.uses)
        return [u for u in self.uses if u.statement.path[:n] == path]

    def touching(self, path: Path) -> list[Use]:
        """Uses by the equations at or below ``path``, without those that add no conflict.

        An equation that reads, in its value, the very element it writes makes no conflict by the
        read that it does not make by the write.
        """
        known = self._touching.get(path)
        if known is None:
            known = self._touching[path] = [u for u in self.under(path) if not self._repeats(u)]
        return known

    def _repeats(self, use: Use) -> bool:
        if use.write or use.role != "value":
            return False
        target = self.by_statement[use.statement.path][0]
        return target.access.name == use.access.name and target.forms == use.forms

    def _visit(
        self,
        nest: Nest,
        path: Path,
        chain: Chain,
        launch: int,
        axes: dict[str, str],
        outer: Converter,
    ) -> None:
        refs = tuple(LoopRef(loop, path, i) for i, loop in enumerate(nest.loops))
        self.loops_of[path] = refs
        chain += refs
        box = dict(outer.bounds.box)
        for loop in nest.loops:
            box[loop.index] = (loop.start, loop.start + loop.extent - 1)
            if loop.axis is not None:
                axes = {**axes, loop.axis: loop.index}
        converter = Converter(Bounds(box), self._table)
        for i, child in enumerate(nest.body):
            if isinstance(child, Nest):
                self._visit(child, (*path, i), chain, launch, axes, converter)
            else:
                self._equation(child, (*path, i), chain, launch, axes, converter)

    def _equation(
        self,
        equation: Equation,
        path: Path,
        chain: Chain,
        launch: int,
        axes: dict[str, str],
        converter: Converter,
    ) -> None:
        self._converter = converter
        guard = TRUE if equation.guard is None else converter.formula(equation.guard)
        statement = Statement(
            (self.place << _PLACES) + len(self.statements),
            path,
            chain,
            equation,
            min(launch, len(chain)),
            axes,
            converter.bounds,
            guard,
        )
        self.statements.append(statement)
        first = len(self.uses)
        self._use(statement, equation.target, guard, "target", write=True)
        for subscript in equation.target.subscripts:
            self._reads(statement, subscript, guard, "target")
        self._reads(statement, equation.value, guard, "value")
        if equation.guard is not None:
            self._reads(statement, equation.guard, TRUE, "guard")
        self.by_statement[path] = self.uses[first:]

    def _reads(self, statement: Statement, expr: Expr, when: Formula, role: Role) -> None:
        if isinstance(expr, Access):
            self._use(statement, expr, when, role, write=False)
        elif isinstance(expr, Call) and expr.function == "if_then_else":
            condition, yes, no = expr.arguments
            self._reads(statement, condition, when, role)
            formula = self._converter.formula(condition)
            self._reads(statement, yes, conjunction((when, formula)), role)
            self._reads(statement, no, conjunction((when, negation(formula))), role)
            return
        elif isinstance(expr, Binary) and expr.op in ("//", "%"):
            self._divides(statement, expr, when, role)
        for child in children(expr):
            if not isinstance(child, Index):
                self._reads(statement, child, when, role)

    def _divides(self, statement: Statement, expr: Binary, when: Formula, role: Role) -> None:
        if isinstance(expr.right, Int) and expr.right.value:
            return
        convert = self._converter.form
        divisor = convert(expr.right)
        if divisor is not None and convert(expr.left) is not None and not is_opaque(divisor):
            target = statement.equation.target
            self.divisors.append(Use(statement, target, False, role, when, (divisor,), 0))

    def _use(
        self, statement: Statement, access: Access, when: Formula, role: Role, *, write: bool
    ) -> None:
        convert = self._converter.form
        instance = () if access.scope == "g" else private_coordinates(statement, access.scope)
        forms = [*instance]
        box = self._converter.bounds.box
        for subscript in access.subscripts:
            if type(subscript) is Index and subscript.name in box:  # nearly all of them
                forms.append(index(subscript.name))
                continue
            form = convert(subscript)
            if form is None:
                form = Form(0, ((Opaque(repr(subscript), *_UNKNOWN_VALUE), 1),))
            forms.append(form)
        use = Use(statement, access, write, role, when, tuple(forms), len(instance))
        self.uses.append(use)
        self.by_tensor.setdefault(access.name, []).append(use)
        if write:
            self.writes.setdefault(access.name, []).append(use)


def private_coordinates(statement: Statement, scope: str) -> tuple[Form, ...]:
    """Which instance of an ``l`` or ``s`` tensor a statement means; nothing for ``g``."""
    if scope == "g":
        return ()
    wanted = AXES if scope == "l" else BLOCK_AXES
    launch = [ref.name for ref in statement.chain[: statement.launch]]
    bound = [statement.axes[axis] for axis in wanted if axis in statement.axes]
    return tuple(index(name) for name in (*launch, *bound))


def launch_indices(nest: Nest) -> tuple[str, ...]:
    """The indices of the launch loops of a top-level nest, outermost first, read off the tree."""
    launch = len(_launch(nest))
    if not launch:
        return ()
    chains = [located.loops[:launch] for located in equations_in(nest)]
    return tuple([loop.index for loop in max(chains, key=len)])


def _launch(nest: Nest) -> tuple[int, ...]:
    """The loops (numbered within the nest) that enclose every ``B`` loop of a top-level nest."""
    outer = list(_around_bound(nest, (), [0]))
    if not outer:
        return ()
    common = outer[0]
    for other in outer[1:]:
        n = 0
        while n < min(len(common), len(other)) and common[n] == other[n]:
            n += 1
        common = common[:n]
    return common


def _around_bound(
    nest: Nest, chain: tuple[int, ...], counter: list[int]
) -> Iterator[tuple[int, ...]]:
    """For every ``B`` loop the numbers of the loops around it."""
    for loop in nest.loops:
        if loop.kind == "B":
            yield chain
        chain = (*chain, counter[0])
        counter[0] += 1
    for child in nest.body:
        if isinstance(child, Nest):
            yield from _around_bound(child, chain, counter)
