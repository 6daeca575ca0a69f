"""Whole numbers that a file names at its top (``batch_size = 16``): the extents of its samples.

A sample of other extents is the same file with other numbers at these places, so its text says
what was run.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import Final

#: A number that is written with more bits than this is no extent.
_BITS: Final = 40


def constants(text: str) -> dict[str, int]:
    r"""Names assigned once, at the top of the file, to a whole number; elements of tuples too.

    Elements of tuples are called ``name[0]``. Empty for text that is no Python.

    >>> constants("n = 4\nm = 2 * 8\nshape = (3, 5)\nk = 1\nk = 2\nreal = 0.5")
    {'n': 4, 'm': 16, 'shape[0]': 3, 'shape[1]': 5}
    """
    return {name: value for name, (_, value) in _places(text).items()}


def substituted(text: str, values: Mapping[str, int]) -> str:
    """The text with other numbers in the places of some constants. Raises KeyError for others.

    >>> substituted("n = 2 ** 4  # rows", {"n": 5})
    'n = 5  # rows'
    """
    places = _places(text)
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    chosen = sorted(
        ((places[name][0], value) for name, value in values.items()),
        key=lambda pair: (pair[0].lineno, pair[0].col_offset),
        reverse=True,
    )
    for node, value in chosen:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        # The lines of a number that spans several stay, so that positions in errors are right.
        lines[first : last + 1] = [head + str(value).encode() + b"\\\n" * (last - first) + tail]
    return b"".join(lines).decode()


def _places(text: str) -> dict[str, tuple[ast.expr, int]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    # Where lines end otherwise than Python counts them, positions are not those of the text.
    if len(text.splitlines()) != len(text.split("\n")) - text.endswith("\n"):
        return {}
    found: dict[str, tuple[ast.expr, int]] = {}
    times: dict[str, int] = {}
    for target, value in (pair for statement in tree.body for pair in _assigned(statement)):
        times[target] = times.get(target, 0) + 1
        parts = [(target, value)]
        if isinstance(value, ast.Tuple | ast.List):
            parts = [(f"{target}[{i}]", element) for i, element in enumerate(value.elts)]
        for name, node in parts:
            number = _number(node)
            if number is not None:
                found[name] = (node, number)
    return {n: place for n, place in found.items() if times[n.split("[")[0]] == 1}


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names with what is assigned to them: ``a = x``, ``a: int = x``, ``a, b = x, y``."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        if isinstance(statement.target, ast.Name):
            yield statement.target.id, statement.value
        return
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return  # two names of one number cannot be set to two
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        # Of unequal lengths they are an error of the file, which executing it shows.
        pairs = zip(target.elts, value.elts, strict=False)
        yield from ((name.id, v) for name, v in pairs if isinstance(name, ast.Name))


def _number(node: ast.expr) -> int | None:
    """The value of an expression of whole numbers, if it is one of a moderate size."""
    value: int | None = None
    if isinstance(node, ast.Constant) and type(node.value) is int:
        value = node.value
    elif isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            value = left + right
        elif isinstance(node.op, ast.Sub):
            value = left - right
        elif isinstance(node.op, ast.Mult):
            value = left * right
        elif isinstance(node.op, ast.FloorDiv) and right > 0:
            value = left // right
        elif isinstance(node.op, ast.Pow | ast.LShift) and 0 <= right <= _BITS:
            value = left**right if isinstance(node.op, ast.Pow) else left << right
    return value if value is not None and 0 <= value < 2**_BITS else None
