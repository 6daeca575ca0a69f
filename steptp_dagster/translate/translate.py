"""``translate``: a PyTorch module with example inputs becomes a signed LEIR program."""

import importlib
import operator as python_operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Node

from steptp_dagster.leir.signature import Role, SignedProgram, Variable
from steptp_dagster.leir.validity import check
from steptp_dagster.translate.builder import Builder, Scan
from steptp_dagster.translate.constants import Constants
from steptp_dagster.translate.export import DTYPES, export
from steptp_dagster.translate.graph import (
    CHECKS,
    NUMBERS,
    change_of_state,
    examples_of,
    is_plain,
    loosely,
    no_element,
    results_of,
)
from steptp_dagster.translate.hints import obstacle_of, without_translation
from steptp_dagster.translate.operators import OPERATORS, Call, Result, Unsupported
from steptp_dagster.translate.scalars import NotANumber, literal
from steptp_dagster.translate.tracing import location, meaning, raised_at
from steptp_dagster.translate.values import Value, filled

#: The modules of translating functions; each fills ``OPERATORS`` when it is imported.
FAMILIES: Final = (
    "ops_bags",
    "ops_create",
    "ops_distance",
    "ops_division",
    "ops_elementwise",
    "ops_index",
    "ops_logic",
    "ops_loss",
    "ops_matmul",
    "ops_norm",
    "ops_patches",
    "ops_recurrent",
    "ops_reduce",
    "ops_resize",
    "ops_sample",
    "ops_scan",
    "ops_scatter",
    "ops_softmax",
    "ops_sort",
    "ops_strided",
    "ops_trig",
    "ops_views",
    "ops_windows",
)
#: Where the operators stand that only say where an element comes from.
VIEWS: Final = "steptp_dagster.translate.ops_views"
#: Operators that look at the shape of their tensor and at none of its elements.
SHAPE_ONLY: Final = frozenset(
    f"aten.{name}.default"
    for name in (
        *("empty_like", "full_like", "ones_like", "zeros_like"),
        *("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"),
    )
)
#: What a translating function raises when its arguments have a form that nobody thought of.
_UNFORESEEN: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
for _family in FAMILIES:
    importlib.import_module(f"steptp_dagster.translate.{_family}")


@dataclass(frozen=True, slots=True)
class Origin:
    """Which nests an operator became: ``nests[first:last]`` of the program, from ``location``."""

    operator: str
    first: int
    last: int
    location: str


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated module.

    ``names`` maps LEIR names of known variables to the names they have in the module (``x``,
    ``layer.weight``, ``output 0``); ``origins`` tells which operator each nest comes from;
    ``source`` is the caller's own word for the program.
    """

    signed: SignedProgram
    names: Mapping[str, str]
    origins: tuple[Origin, ...]
    source: str


@dataclass(frozen=True, slots=True)
class TranslationRefusal:
    """Why a module has no translation, and what would work.

    ``operator`` is the overload (``aten.sort.default``) or ``torch.export`` where the module
    could not even be exported; ``argument`` its argument, where one is to blame; ``location`` the
    line of the user's code as ``file:line: code``.
    """

    operator: str
    argument: str
    message: str
    location: str

    def __str__(self) -> str:
        """One line for people."""
        what = f"{self.operator}({self.argument})" if self.argument else self.operator
        where = f" at {self.location}" if self.location else ""
        return f"{what}{where}: {self.message}"


#: Of a form in which a program is written as it is in the composed one, which is there too.
SAME_AS_COMPOSED: Final = TranslationRefusal(
    "same-as-composed", "", "nothing of it is written otherwise in this form", ""
)


class _Refused(Exception):
    """Carries a refusal out of the walk over the graph."""

    def __init__(self, refusal: TranslationRefusal, unproved: bool = False) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.unproved = unproved


def translate(
    module: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    *,
    source: str = "",
    ranges: Mapping[str, tuple[int | float, int | float]] | None = None,
    naive: bool = False,
    scan: Scan | None = None,
) -> Translation | TranslationRefusal:
    """Translate ``module`` as it computes on inputs of these shapes and dtypes.

    The module is exported in the mode (training or evaluation) it is in. Parameters become
    ``param`` variables without values; buffers and tensors written in the code become ``const``
    variables with theirs. ``ranges`` bounds the values of inputs (by their name in ``forward``,
    both ends inclusive); integer inputs that serve as subscripts are bounded anyway. With ``naive``
    every view of floats or bools is stored by a nest of its own instead of being composed into the
    subscripts of its readers, norms and functions of exponentials are written step by step, and
    what only gives a shape to ``zeros_like`` and its relatives is computed as PyTorch computes it.
    ``scan`` is the form of running sums and products: ``recurrence`` (in sequence) or
    ``triangular`` (each from all before it); None is the latter for ``naive``. What a module
    writes into its inputs is no result of the call. An operator without translation is refused by
    name; nothing is skipped.
    """
    try:
        exported = export(module, inputs)
    except Exception as error:  # noqa: BLE001 - torch.export raises user and own errors of any type
        return TranslationRefusal("torch.export", "", meaning(error), raised_at(error))
    examples = examples_of(exported, inputs)
    default: Scan = "triangular" if naive else "recurrence"
    for bounded in (False, True):
        builder = Builder(scan=scan or default, bounded=bounded, naive=naive)
        walk = _Walk(exported, source, ranges or {}, builder, examples)
        try:
            return walk.run()
        except _Refused as refused:
            # subscripts that the program computes are moved into range only where they have to be
            if not (refused.unproved and walk.builder.computed_indices) or bounded:
                return refused.refusal
        except Exception as error:  # noqa: BLE001 - a program that breaks the translator is refused
            message = f"an unforeseen form ({type(error).__name__}: {error}); please report it"
            return TranslationRefusal("translate", "", message, "")
    raise AssertionError("the second walk returns")


class _Walk:
    """One walk over an exported graph."""

    def __init__(
        self,
        exported: ExportedProgram,
        source: str,
        ranges: Mapping[str, tuple[int | float, int | float]],
        builder: Builder,
        examples: Mapping[str, tuple[int, int]],
    ) -> None:
        self.examples = examples
        self.naive = builder.naive
        self.ranges = ranges
        self.exported = exported
        self.source = source
        self.builder = builder
        self.constants = Constants(builder)
        self.placeholders = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}
        self.values: dict[str, Any] = {}
        self.origins: list[Origin] = []
        self.reached: set[str] = set()
        self.names: dict[str, str] = {}

    def run(self) -> Translation:
        signature = self.exported.graph_signature
        for updated in signature.output_specs:
            if message := change_of_state(updated):
                raise _Refused(TranslationRefusal("output", str(updated.target), message, ""))
        self.reached = self.needed()
        for spec in signature.input_specs:
            self.declare(spec.kind, spec.arg, spec.target)
        for node in self.exported.graph.nodes:
            if node.name not in self.reached:
                continue
            if node.op == "call_function":
                self.values[node.name] = self.call(node)
        self.outputs()
        if not self.builder.nests:
            raise _Refused(TranslationRefusal("output", "", "the program computes nothing", ""))
        signed, final = self.builder.finish()
        self.verified(signed)
        kept = {v.name for v in signed.signature.variables}
        names = {final[k]: v for k, v in self.names.items() if final.get(k) in kept}
        return Translation(signed, names, tuple(self.origins), self.source)

    def needed(self) -> set[str]:
        """The nodes on which the results of the module depend, and the results."""
        nodes = self.exported.graph.nodes
        results = {spec.arg.name for spec in self.results() if hasattr(spec.arg, "name")}
        needed = {n.name for n in nodes if n.op == "output" or n.name in results}
        for node in reversed(nodes):
            shape_only = str(node.target) in SHAPE_ONLY and not self.naive
            if node.op == "call_function" and not shape_only and node.name in needed:
                needed |= {n.name for n in node.all_input_nodes}
        return needed

    def results(self) -> list[OutputSpec]:
        """What the module returns, without what it remembers."""
        specs = self.exported.graph_signature.output_specs
        return [s for s in specs if s.kind == OutputKind.USER_OUTPUT]

    def verified(self, signed: SignedProgram) -> None:
        """Refuse what LEIR cannot show to be valid, by the operator whose nest it is.

        This concerns subscripts computed by the program itself, whose range is not known.
        """
        for violation in check(signed):
            nest = violation.path[0] if violation.path else 0
            origin = next((o for o in self.origins if o.first <= nest < o.last), None)
            name, where = (origin.operator, origin.location) if origin else ("output", "")
            message = f"{violation.kind}: {violation.message}"
            raise _Refused(TranslationRefusal(name, "", message, where), unproved=True)

    def declare(self, kind: InputKind, argument: object, target: str | None) -> None:
        """Turn one placeholder into a known variable."""
        if kind == InputKind.TOKEN:
            return
        if isinstance(argument, ConstantArgument):
            self.values[argument.name] = argument.value
            return
        if not isinstance(argument, TensorArgument):
            message = f"an input of type {type(argument).__name__}; tensors and constants do"
            raise _Refused(TranslationRefusal("input", str(target), message, ""))
        node = self.placeholders[argument.name]
        shape, dtype = self.described(node.meta["val"], "input", target or argument.name)
        if kind not in (InputKind.USER_INPUT, InputKind.PARAMETER):
            if node.name in self.reached:
                self.declare_constant(node.name, str(target), kind, dtype)
            return
        role: Role = "input" if kind == InputKind.USER_INPUT else "param"
        low, high = self.ranges.get(argument.name, (None, None))

        def make(name: str) -> Variable:
            return Variable(role, name, dtype, shape, low, high)

        value = self.builder.declare(make)
        self.values[argument.name] = value
        assert value.tensor is not None
        self.names[value.tensor] = target or argument.name
        example = self.examples.get(argument.name)
        if example is not None:
            self.builder.examples[value.tensor] = example

    def declare_constant(self, name: str, target: str, kind: InputKind, dtype: str) -> None:
        """Turn a buffer or lifted constant into a known variable, or a formula."""
        held = self.exported.constants.get(target)
        if held is None:
            held = self.exported.state_dict.get(target)
        if not isinstance(held, torch.Tensor):
            message = f"a {kind.name.lower()} that is no tensor"
            raise _Refused(TranslationRefusal("input", target, message, ""))
        try:
            value = self.values[name] = self.constants.value(held, dtype)
        except Unsupported as refused:
            raise _Refused(TranslationRefusal("input", target, refused.message, "")) from None
        if value.tensor is not None:
            self.names.setdefault(value.tensor, target)

    def described(self, fake: object, operator: str, argument: str) -> tuple[tuple[int, ...], str]:
        """Shape and LEIR dtype of a tensor as PyTorch describes it."""
        obstacle = obstacle_of(fake)
        if obstacle:
            raise _Refused(TranslationRefusal(operator, argument, obstacle, ""))
        assert isinstance(fake, torch.Tensor)
        return tuple(int(n) for n in fake.shape), DTYPES[fake.dtype]

    def call(self, node: Node) -> Result:
        """Translate one call of an operator."""
        if node.target is python_operator.getitem:
            return self.item(node)
        name = str(node.target)
        if name in CHECKS:
            return ()
        translator = OPERATORS.get(name)
        if translator is None:
            raise self.refusal(node, name, "", without_translation(node.target, name))
        empty = self.empty(node)
        if empty is not None:
            return empty
        first = len(self.builder.nests)
        try:
            fakes = results_of(node.meta["val"])
            # only results that are used must be tensors LEIR can hold; `item` looks at those
            described = [self.described(fakes[0], name, "result")]
            described += [loosely(f) for f in fakes[1:]]
            call = Call(
                self.builder,
                name,
                tuple(d[0] for d in described),
                tuple(d[1] for d in described),
                self.used(node),
                is_plain(node),
            )
            result = translator(call, *self.arguments(node))
            if self.naive and translator.__module__ == VIEWS:
                result = self.copied(result)
        except Unsupported as refused:
            raise self.refusal(node, name, refused.argument, refused.message) from None
        except NotANumber as error:
            raise self.refusal(node, name, "", str(error)) from None
        except _UNFORESEEN as error:
            message = f"an unforeseen form of its arguments ({type(error).__name__}: {error})"
            raise self.refusal(node, name, "", message) from error
        except _Refused as refused:
            raise self.refusal(
                node, name, refused.refusal.argument, refused.refusal.message
            ) from None
        last = len(self.builder.nests)
        if last > first:
            self.origins.append(Origin(name, first, last, location(node.stack_trace)))
        return result

    def empty(self, node: Node) -> Value | None:
        """A result without elements, which nothing can read; None where there are elements."""
        fake = node.meta["val"]
        if not isinstance(fake, torch.Tensor):
            return None
        if not all(isinstance(n, int) for n in fake.shape) or all(n != 0 for n in fake.shape):
            return None
        shape = tuple(int(n) for n in fake.shape)
        return Value(shape, DTYPES.get(fake.dtype, ""), no_element)

    def copied(self, result: Result) -> Result:
        """Views as tensors of their own; integers stay, since subscripts need their range."""
        if isinstance(result, tuple):
            return tuple(self.copy(value) for value in result)
        return self.copy(result)

    def copy(self, value: Value) -> Value:
        return self.builder.store(value) if value.is_float or value.dtype == "bool" else value

    def used(self, node: Node) -> frozenset[int]:
        """The results of a node that are read: the first of one that is no tuple."""
        items = [u for u in node.users if u.target is python_operator.getitem]
        if not items:
            return frozenset({0})
        return frozenset(u.args[1] for u in items if u.name in self.reached)  # type: ignore[misc]

    def item(self, node: Node) -> Value:
        """One of several results."""
        whole, position = node.args
        if not isinstance(whole, Node) or not isinstance(position, int):
            raise self.refusal(node, "getitem", "", "not an item of an operator's results")
        results = self.values[whole.name]
        if position >= len(results):
            message = f"its result {position} has no translation"
            raise self.refusal(node, str(whole.target), "", message)
        value: Value = results[position]
        self.described(node.meta["val"], str(whole.target), f"result {position}")
        return value

    def arguments(self, node: Node) -> list[Any]:
        """All arguments in the order of the schema, defaults filled in, tensors as values."""
        given = [self.resolved(a) for a in node.args]
        named = {k: self.resolved(v) for k, v in node.kwargs.items()}
        schema = node.target._schema.arguments  # type: ignore[union-attr]
        return [
            given[i] if i < len(given) else named.get(a.name, a.default_value)
            for i, a in enumerate(schema)
        ]

    def resolved(self, argument: object) -> Any:  # noqa: ANN401 - whatever FX holds
        """An FX argument with its nodes replaced by values."""
        if isinstance(argument, Node):
            unread = argument.name not in self.values and argument.name not in self.reached
            return None if unread else self.values[argument.name]
        if isinstance(argument, list | tuple):
            return [self.resolved(a) for a in argument]
        return argument

    def outputs(self) -> None:
        """Declare the outputs."""
        for position, argument in enumerate(self.returned()):
            value = self.builder.output(argument)
            self.names[value] = f"output {position}"

    def returned(self) -> Iterator[Value]:
        """The values that the module returns; None is no result, a number is a constant."""
        for spec in self.results():
            match spec.arg:
                case TensorArgument(name=name):
                    yield self.values[name]
                case ConstantArgument(value=None):
                    continue
                case ConstantArgument(value=bool() | int() | float() as number):
                    yield filled((), NUMBERS[type(number)], literal(number))
                case _:
                    message = f"an output of type {type(spec.arg).__name__}; tensors do"
                    raise _Refused(TranslationRefusal("output", "", message, ""))

    def refusal(self, node: Node, operator: str, argument: str, message: str) -> _Refused:
        return _Refused(TranslationRefusal(operator, argument, message, location(node.stack_trace)))
