"""A source program: a module class, named shapes, and how to sample and build it.

Shapes are mappings from names to integers. Besides extents they hold the arguments that a sample
chooses for the module (``kernel``, ``stride``, ``bias`` as 0 or 1), so that a shape says all.
"""

import ast
import importlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import torch
    from torch import nn

Shape = Mapping[str, int]
Size = Literal["default", "large"]

PROGRAMS: Final = "steptp_dagster.sources.programs"
#: Working precisions of every program.
DTYPES: Final = ("f16", "f32", "f64")
#: Most scalar iterations of a default sample, by the program's own estimate.
BUDGET: Final = 60_000
#: Draws after which a sampler gives up on finding another shape.
_DRAWS: Final = 2_000


class SourceError(Exception):
    """A source program was asked for something it has not: an unknown dtype, an unfit shape."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a program.

    ``extents`` are names of the shape or numbers. ``dtype`` is ``float`` (the working precision
    of the sample) or a LEIR integer type; ``low`` and ``high`` bound the values (both inclusive),
    ``high`` of an integer input being the name of the extent that it indexes, if it is a name.
    """

    name: str
    extents: tuple[str | int, ...]
    dtype: str = "float"
    low: int | float | None = None
    high: int | float | str | None = None


@dataclass(frozen=True, slots=True)
class InputSpec:
    """An input of one sample: everything known. ``dtype`` is a LEIR dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: int | float | None = None
    high: int | float | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """A module with its inputs described. ``dtype`` is the working precision."""

    module: "nn.Module"
    inputs: tuple[InputSpec, ...]
    dtype: str

    @property
    def ranges(self) -> dict[str, tuple[int | float, int | float]]:
        """Value ranges of those inputs that have one, by name."""
        return {
            i.name: (i.low, i.high) for i in self.inputs if i.low is not None and i.high is not None
        }

    def example(self, seed: int) -> "tuple[torch.Tensor, ...]":
        """Input tensors: standard normal floats (within their range), uniform integers."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        return tuple(_tensor(spec, generator) for spec in self.inputs)

    def blank(self) -> "tuple[torch.Tensor, ...]":
        """Inputs of the right shapes, enough to export: zeros, whose memory is never touched.

        Integers are those of ``example(0)``: translations ask which values subscripts have.
        """
        import torch

        generator = torch.Generator().manual_seed(0)
        return tuple(
            torch.zeros(i.shape, dtype=_torch_dtype(i.dtype))
            if _torch_dtype(i.dtype).is_floating_point
            else _tensor(i, generator)
            for i in self.inputs
        )


@dataclass(frozen=True)
class Source:
    """One program of the library; a row of a table in ``tables/``.

    ``module`` is ``file:Class`` below ``programs/``; ``arguments`` are the names of the shape
    that its constructor takes by keyword. ``pools`` gives the values of every name for default
    samples, ``large`` those for paper-like sizes; ``structure`` the names that a sibling keeps.
    ``work`` estimates the scalar iterations, ``admits`` says which combinations make sense.
    ``origin`` tells the published workloads from programs of our own (``steptp``).
    """

    program: str
    workload_level: int
    family: str
    module: str
    inputs: tuple[Input, ...]
    pools: Mapping[str, tuple[int, ...]]
    large: Mapping[str, tuple[int, ...]]
    work: Callable[[Shape], int]
    arguments: tuple[str, ...] = ()
    structure: frozenset[str] = frozenset()
    admits: Callable[[Shape], bool] = field(default=lambda _: True)
    dtypes: tuple[str, ...] = DTYPES
    origin: Literal["published", "steptp"] = "published"

    def sample(
        self, rng: random.Random, count: int, size: Size = "default", *, usual: bool = False
    ) -> tuple[dict[str, int], ...]:
        """``count`` distinct shapes, fewer where there are not that many.

        Default shapes stay within ``BUDGET``; large ones are not meant to be executed. In
        ``usual`` ones no name is 1 that never is at paper-like sizes: a product of one row, or an
        attention of one head, lacks loops that make it what it is.
        """
        pools = self.pools if size == "default" else {**self.pools, **self.large}
        fits = self._affordable if size == "default" else self.admits
        wide = self._wide if usual else frozenset()
        found: dict[tuple[int, ...], dict[str, int]] = {}
        for shape in self._draws(rng, pools):
            if fits(shape) and all(shape[name] > 1 for name in wide):
                found.setdefault(tuple(shape.values()), shape)
            if len(found) == count:
                break
        return tuple(found.values())

    def sibling(self, shape: Shape, rng: random.Random) -> dict[str, int]:
        """A small shape of the same structure as ``shape``, for numerical evidence.

        Arguments and extents of 1 stay as they are; no other extent becomes 1. Raises SourceError
        where no such shape is found.
        """
        pools = {
            name: (shape[name],)
            if name in self.structure or shape[name] == 1
            else tuple(v for v in pool if v > 1)
            for name, pool in self.pools.items()
        }
        for candidate in self._draws(rng, pools):
            if self._affordable(candidate):
                return candidate
        raise SourceError(f"{self.program}: no small shape is structured like {dict(shape)}")

    def least(self, shape: Shape, draws: int = 16) -> dict[str, int]:
        """The cheapest of a few siblings of ``shape``: for what is evaluated slowly.

        The same for equal shapes. Raises SourceError as ``sibling``.
        """
        rng = random.Random(repr(sorted(shape.items())))
        return min((self.sibling(shape, rng) for _ in range(draws)), key=self.work)

    def build(self, shape: Shape, dtype: str = "f32", seed: int = 0) -> Built:
        """The module (in evaluation mode) and its inputs at one shape, in one precision.

        ``seed`` decides the initial parameters. Raises SourceError for a dtype or shape that the
        program has not.
        """
        import torch

        if dtype not in self.dtypes:
            raise SourceError(f"{self.program} has no dtype {dtype!r}; {' '.join(self.dtypes)}")
        if set(shape) != set(self.pools):
            raise SourceError(f"{self.program} has the extents {' '.join(self.pools)}")
        file, name = self.module.split(":")
        make = getattr(importlib.import_module(f"{PROGRAMS}.{file}"), name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module: nn.Module = make(**{a: shape[a] for a in self.arguments})
        module = module.to(_torch_dtype(dtype)).eval()
        return Built(module, self.describe(shape, dtype), dtype)

    def describe(self, shape: Shape, dtype: str = "f32") -> tuple[InputSpec, ...]:
        """The inputs at one shape, in one precision; without torch."""
        return tuple(_described(i, shape, dtype) for i in self.inputs)

    @cached_property
    def code(self) -> str:
        """The text of the module, with the imports it needs; read without importing it."""
        file, name = self.module.split(":")
        return _source_text(file, name)

    @cached_property
    def code_hash(self) -> str:
        """Digest of the code, 32 hexadecimal digits."""
        return blake2b(self.code.encode(), digest_size=16).hexdigest()

    @property
    def _wide(self) -> frozenset[str]:
        """Names that are never 1 at paper-like sizes, and need not be at small ones."""
        return frozenset(n for n, pool in self.large.items() if min(pool) > 1 < max(self.pools[n]))

    def _affordable(self, shape: Shape) -> bool:
        return self.admits(shape) and self.work(shape) <= BUDGET

    def _draws(
        self, rng: random.Random, pools: Mapping[str, tuple[int, ...]]
    ) -> Iterator[dict[str, int]]:
        for _ in range(_DRAWS):
            yield {name: rng.choice(pools[name]) for name in self.pools}


def _described(given: Input, shape: Shape, dtype: str) -> InputSpec:
    extents = tuple(e if isinstance(e, int) else shape[e] for e in given.extents)
    high = shape[given.high] - 1 if isinstance(given.high, str) else given.high
    kind = dtype if given.dtype == "float" else given.dtype
    return InputSpec(given.name, extents, kind, given.low, high)


def _torch_dtype(name: str) -> "torch.dtype":
    import torch

    return {
        "f16": torch.float16,
        "f32": torch.float32,
        "f64": torch.float64,
        "i32": torch.int32,
        "i64": torch.int64,
        "bool": torch.bool,
    }[name]


def _tensor(spec: InputSpec, generator: "torch.Generator") -> "torch.Tensor":
    import torch

    kind = _torch_dtype(spec.dtype)
    if not kind.is_floating_point:
        low, high = int(spec.low or 0), int(1 if spec.high is None else spec.high)
        return torch.randint(low, high + 1, spec.shape, generator=generator).to(kind)
    if spec.low is not None and spec.high is not None:
        unit = torch.rand(spec.shape, generator=generator, dtype=torch.float64)
        return (unit * (spec.high - spec.low) + spec.low).to(kind)
    return torch.randn(spec.shape, generator=generator, dtype=torch.float64).to(kind)


def _source_text(file: str, name: str) -> str:
    """The class ``name`` of a program file after what it uses of that file, imports first."""
    spec = find_spec(f"{PROGRAMS}.{file}")
    if spec is None or spec.origin is None:
        raise SourceError(f"no file of programs is called {file}")
    text = Path(spec.origin).read_text(encoding="utf-8")
    tree = ast.parse(text)
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    if name not in classes:
        raise SourceError(f"{file} has no class {name}")
    used: set[str] = set()
    wanted = [name]
    for each in wanted:  # grows while it is walked
        names = {n.id for n in ast.walk(classes[each]) if isinstance(n, ast.Name)}
        wanted.extend(c for c in classes if c in names and c not in wanted)
        used |= names
    imports = [
        ast.get_source_segment(text, node) or ""
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and {(a.asname or a.name).split(".")[0] for a in node.names} & used
    ]
    bodies = [ast.get_source_segment(text, classes[c]) or "" for c in classes if c in wanted]
    return "\n".join(imports) + "\n\n\n" + "\n\n\n".join(bodies) + "\n"
