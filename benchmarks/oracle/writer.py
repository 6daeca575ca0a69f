"""Nests as Python text: nested ``for`` loops over dictionaries of cells, with a log an access."""

from benchmarks.oracle.arithmetic import WORLD, single
from benchmarks.oracle.axes import BLOCKS, THREADS
from benchmarks.oracle.cells import BITS, SHIFT
from benchmarks.oracle.running import Meaningless, NestCode, Node, Occurrence
from benchmarks.oracle.trees import (
    accesses,
    all_equations,
    launches,
    nodes_of,
    offset_of,
    parts_of,
    size_of,
)
from benchmarks.oracle.updates import update_of
from steptp_dagster.leir.ast import (
    Access,
    Binary,
    Call,
    Compare,
    Equation,
    Expr,
    Index,
    Inf,
    Int,
    Loop,
    Nest,
    Real,
    Statement,
    Unary,
)


class Writer:
    """Writes a nest as Python text."""

    def __init__(self, nest: Nest, single: bool = False) -> None:
        self.nest, self.single = nest, single
        self.lines: list[str] = []
        self.nodes: list[Node] = []
        self.logs = 0
        self.context = "f64"

    def compiled(self) -> NestCode:
        """The whole nest. Raises Meaningless."""
        self._launches = launches(self.nest)
        self._statement(self.nest, (), (), (), (), "  ")
        parts = [p for e in all_equations([self.nest]) for p in parts_of(e)]
        names = sorted({a.name for p in parts for a in accesses(p)})
        head = ["def run(cells, logs):", "  on = bool(logs)"]
        head += [f"  {_cell(n)} = cells[{n!r}]" for n in names]
        head += [f"  g{k} = logs[{k}].append if logs else None" for k in range(self.logs)]
        world = dict(WORLD)
        exec(compile("\n".join(head + self.lines), "<nest>", "exec"), world)
        return NestCode(self.nest, tuple(self.nodes), world["run"], self.logs)

    # -- statements

    def _statement(
        self,
        statement: Statement,
        path: tuple[int, ...],
        loops: tuple[Loop, ...],
        where: tuple[tuple[tuple[int, ...], int], ...],
        strides: tuple[int, ...],
        indent: str,
    ) -> None:
        if isinstance(statement, Equation):
            self._equation(statement, path, loops, where, strides, indent)
            return
        size = sum(size_of(s) for s in statement.body)
        inner = []
        for loop in reversed(statement.loops):
            inner.append(size)
            size *= loop.extent
        for k, loop in enumerate(statement.loops):
            if any(loop.index == other.index for other in (*loops, *statement.loops[:k])):
                raise Meaningless(f"index-rebound: {loop.index}")
            span = f"range({loop.start}, {loop.start + loop.extent})"
            self.lines.append(f"{indent}for i_{loop.index} in {span}:")
            indent += " "
        around = (*where, *((path, k) for k in range(len(statement.loops))))
        for i, child in enumerate(statement.body):
            self._statement(
                child,
                (*path, i),
                loops + statement.loops,
                around,
                strides + tuple(reversed(inner)),
                indent,
            )

    def _equation(
        self,
        equation: Equation,
        path: tuple[int, ...],
        loops: tuple[Loop, ...],
        where: tuple[tuple[tuple[int, ...], int], ...],
        strides: tuple[int, ...],
        indent: str,
    ) -> None:
        bound = {loop.index for loop in loops}
        self.loops, self.where = loops, where
        self.occurrences: list[Occurrence] = []
        target, value = equation.target, equation.value
        self.own: Access | None = None
        update = update_of(equation, loops, self._text)
        dtype = target.dtype
        self.context = "f32" if dtype in ("f16", "bf16", "f32") else "f64"
        self.own = next((a for a in accesses(value) if a.name == target.name), None)
        self.own = self.own if update else None
        for part in parts_of(equation):
            for name in {i.name for i in nodes_of(part) if isinstance(i, Index)}:
                if name not in bound:
                    raise Meaningless(f"unbound-index: {name}")
        guard = self._text(equation.guard) if equation.guard else None
        key = self._key(target)
        text, kind = self._text(value), self._kind(value)
        if dtype[0] in "fb" and dtype != "bool":
            text = text if kind == "f" else f"float({text})"
            text = f"r({text})" if self.single and dtype == "f32" and kind != "f" else text
            text = f"h({text})" if self.single and dtype == "f16" else text
        elif dtype == "bool":
            text = text if kind == "b" else f"bool({text})"
        else:
            text = f"tr({text})" if kind == "f" else f"int({text})" if kind == "b" else text
        place = self._occurrence(target, write=True)
        own = None
        if update:
            own = self._occurrence(target, write=False, own=True)
        lines = []
        lines.append(f"k{place} = {key}")
        if update:
            begin = {"+": "0", "*": "1", "max": "-inf", "min": "inf"}[update]
            if dtype[0] in "iu":
                low, high = _integers(dtype)
                begin = {"max": str(low), "min": str(high)}.get(update, begin)
            elif dtype != "bool":
                begin = f"float({begin!r})"
            lines.append(f"old = {_cell(target.name)}.get(k{place}, {begin})")
            lines.append(f"k{own} = k{place}")
        lines.append(f"{_cell(target.name)}[k{place}] = {text}")
        deep = indent
        # All keys of an instance that an untaken branch or a false guard leaves out are -1.
        keys = [f"k{o.log}" for o in self.occurrences]
        self.lines.append(f"{indent}{' = '.join(keys)} = -1")
        if guard is not None:
            self.lines.append(f"{indent}if {guard}:")
            deep = indent + " "
        self.lines += [deep + line for line in lines]
        self.lines.append(f"{indent}if on: " + "; ".join(f"g{k[1:]}({k})" for k in keys))
        before = offset_of(self.nest, path)
        launch = sum(self._is_launch(w) for w in where)
        self.nodes.append(
            Node(
                path,
                equation,
                loops,
                where,
                strides,
                before,
                launch,
                update,
                tuple(self.occurrences),
            )
        )

    def _is_launch(self, where: tuple[tuple[int, ...], int]) -> bool:
        return where in self._launches

    # -- expressions

    def _occurrence(self, access: Access, write: bool, own: bool = False) -> int:
        self.occurrences.append(Occurrence(self.logs, access.name, access.scope, write, own))
        self.logs += 1
        return self.logs - 1

    def _key(self, access: Access) -> str:
        """The key of the element: the instance of ``s`` and ``l``, then the subscripts."""
        parts: list[str] = []
        if access.scope != "g":
            axes = BLOCKS if access.scope == "s" else BLOCKS + THREADS
            parts += [
                f"i_{x.index}"
                for x, w in zip(self.loops, self.where, strict=True)
                if self._is_launch(w)
            ]
            for axis in axes:
                loop = next((x for x in self.loops if x.axis == axis), None)
                parts.append(f"i_{loop.index}" if loop else "-1")
        parts += [self._text(s, subscript=True) for s in access.subscripts]
        if not parts:
            return "0"
        text, constant = "", 0
        for i, part in enumerate(reversed(parts)):
            constant += SHIFT << (BITS * i)
            term = part if i == 0 else f"(({part})<<{BITS * i})"
            text = f"{text}+{term}" if text else f"({term})"
        return f"{text}+{constant}"

    def _text(self, expr: Expr, subscript: bool = False) -> str:
        match expr:
            case Int():
                return str(expr.value)
            case Real():
                value = expr.value
                return repr(single(value) if self.single and self.context == "f32" else value)
            case Inf():
                return "inf"
            case Index():
                return f"i_{expr.name}"
            case Access():
                if expr is self.own:
                    return "old"
                key = self._key(expr)
                place = self._occurrence(expr, write=False)
                return f"{_cell(expr.name)}[(k{place} := {key})]"
            case Unary():
                return f"(-{self._text(expr.operand)})"
            case Compare():
                return self._compared(expr)
            case Binary():
                return self._binary(expr)
            case Call():
                return self._call(expr)
        raise TypeError(expr)

    def _compared(self, expr: Compare) -> str:
        outer = self.context
        types = {_float(e) for e in expr.operands}
        self.context = "f32" if "f32" in types and "f64" not in types else "f64"
        texts = [self._text(e) for e in expr.operands]
        self.context = outer
        if len(texts) == 2:
            return f"({texts[0]} {expr.ops[0]} {texts[1]})"
        # Strict: each operand is evaluated, once.
        names = [f"c{id(expr) % 10**6}_{i}" for i in range(len(texts))]
        made = ", ".join(f"({n} := {t})" for n, t in zip(names, texts, strict=True))
        chain = " and ".join(f"{names[i]} {op} {names[i + 1]}" for i, op in enumerate(expr.ops))
        return f"(({made}) and ({chain}))"

    def _binary(self, expr: Binary) -> str:
        outer = self.context
        self.context = _float(expr) or outer
        left, right = self._text(expr.left), self._text(expr.right)
        kind = self._kind(expr)
        match expr.op:
            case "&" | "|":
                self.context = outer
                return f"(({left}) {expr.op} ({right}))"
            case "/":
                text = f"dv({left}, {right})"
            case "**":
                text = f"pw({left}, {right})"
            case "//":
                text = f"({left} // {right})" if kind == "i" else f"fl({left}, {right})"
            case "%":
                text = f"({left} % {right})" if kind == "i" else f"md({left}, {right})"
            case _:
                text = f"({left} {expr.op} {right})"
        text = self._rounded(text, expr)
        self.context = outer
        return text

    def _call(self, expr: Call) -> str:
        outer = self.context
        texts = []
        for i, argument in enumerate(expr.arguments):
            condition = expr.function == "if_then_else" and i == 0
            self.context = "f64" if condition else _float(expr) or outer
            texts.append(self._text(argument))
        self.context = _float(expr) or outer
        if expr.function == "if_then_else":
            text = f"({texts[1]} if {texts[0]} else {texts[2]})"
        else:
            text = f"{expr.function}({', '.join(texts)})"
            if expr.function not in ("max", "min", "abs"):
                text = self._rounded(text, expr)
        self.context = outer
        return text

    def _rounded(self, text: str, expr: Expr) -> str:
        narrow = self.single and self._kind(expr) == "f" and self.context == "f32"
        return f"r({text})" if narrow else text

    def _kind(self, expr: Expr) -> str:
        """f, i or b: what Python number the text gives."""
        match expr:
            case Int() | Index():
                return "i"
            case Real() | Inf():
                return "f"
            case Access():
                dtype = expr.dtype
                return "b" if dtype == "bool" else "f" if dtype[0] in "fb" else "i"
            case Unary():
                return "f" if self._kind(expr.operand) == "f" else "i"
            case Compare():
                return "b"
            case Binary():
                if expr.op in "&|":
                    return "b"
                kinds = self._kind(expr.left), self._kind(expr.right)
                return "f" if expr.op == "/" or "f" in kinds else "i"
            case Call():
                if expr.function in ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos"):
                    return "f"
                if expr.function == "if_then_else":
                    kinds = self._kind(expr.arguments[1]), self._kind(expr.arguments[2])
                else:
                    kinds = tuple(self._kind(a) for a in expr.arguments)  # type: ignore[assignment]
                return kinds[0] if len(set(kinds)) == 1 else "f" if "f" in kinds else "i"
        raise TypeError(expr)


def _float(expr: Expr) -> str | None:
    """The float type in which an expression is worked out, where its operands fix one."""
    match expr:
        case Access():
            return {"f64": "f64", "f32": "f32", "f16": "f32", "bf16": "f32"}.get(expr.dtype)
        case Unary():
            parts: tuple[Expr, ...] = (expr.operand,)
        case Binary() if expr.op not in "&|":
            parts = (expr.left, expr.right)
        case Call(function="if_then_else"):
            parts = expr.arguments[1:]
        case Call():
            parts = expr.arguments
        case _:
            return None
    found = [_float(p) for p in parts]
    return "f64" if "f64" in found else "f32" if "f32" in found else None


def _cell(name: str) -> str:
    return f"c_{name}"


def _integers(dtype: str) -> tuple[int, int]:
    bits = int(dtype[1:])
    return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
