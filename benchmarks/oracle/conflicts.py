"""Conflicts in one nest, read off the logs of a run: between iterations, threads and blocks."""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.oracle.axes import BLOCKS, THREADS
from benchmarks.oracle.cells import Array
from benchmarks.oracle.running import NestCode, Node
from benchmarks.oracle.trees import nodes_of
from steptp_dagster.leir.ast import Index


class NestRun:
    """The checks of one nest."""

    def __init__(self, code: NestCode, logs: list[list[int]], before: set[tuple[str, int]]) -> None:
        self.nodes, self.logs, self.before = code.nodes, logs, before
        self.grids = [_grid(n) for n in self.nodes]
        self.ids: dict[tuple[str, int], int] = {}

    def faults(self) -> Iterator[str]:
        """All faults, each kind and tensor once."""
        rows = self._rows()
        if rows is None:
            return
        found: dict[str, None] = {}
        for fault in (*self._starts(rows), *self._loops(rows), *self._blocks(rows)):
            found.setdefault(fault)
        yield from found

    def _rows(self) -> dict[str, Array] | None:
        """One row an access: node number, instance, address, write, own."""
        columns: dict[str, list[Array]] = {k: [] for k in ("node", "at", "id", "write", "own")}
        for number, node in enumerate(self.nodes):
            for o in node.occurrences:
                log = self.logs[o.log]
                ids = self.ids
                name = o.tensor
                numbers = np.fromiter(
                    (-1 if k < 0 else ids.setdefault((name, k), len(ids)) for k in log),
                    np.int64,
                    len(log),
                )
                at = np.nonzero(numbers >= 0)[0]
                columns["node"].append(np.full(len(at), number))
                columns["at"].append(at)
                columns["id"].append(numbers[at])
                columns["write"].append(np.full(len(at), o.write))
                columns["own"].append(np.full(len(at), o.write or o.own))
        if not columns["node"]:
            return None
        rows = {k: np.concatenate(v) for k, v in columns.items()}
        rows["time"] = np.zeros(len(rows["node"]), np.int64)
        for number, (node, grid) in enumerate(zip(self.nodes, self.grids, strict=True)):
            mine = rows["node"] == number
            times = np.full(len(grid[0]) if grid else 1, node.before)
            for loop, values, stride in zip(node.loops, grid, node.strides, strict=True):
                times = times + (values - loop.start) * stride
            rows["time"][mine] = times[rows["at"][mine]]
        # Only elements that the nest writes can be in conflict.
        written = np.zeros(len(self.ids), bool)
        written[rows["id"][rows["write"]]] = True
        mine = written[rows["id"]]
        self.names = list(self.ids)
        return {k: v[mine] for k, v in rows.items()}

    def _values(self, rows: dict[str, Array], wanted: Array, places: Sequence[int]) -> Array:
        """For the rows in ``wanted`` one number for the indices of the loops at ``places``."""
        result = np.zeros(len(wanted), np.int64)
        nodes = rows["node"][wanted]
        for number in np.unique(nodes):
            mine = nodes == number
            grid = self.grids[number]
            at = rows["at"][wanted][mine]
            value = np.zeros(len(at), np.int64)
            for place in places:
                value = value * 70000 + grid[place][at] if place < len(grid) else value
            result[mine] = value
        return result

    def _starts(self, rows: dict[str, Array]) -> Iterator[str]:
        """Updates: all elements fresh or none, and nobody else looks at a partial value."""
        order = np.lexsort((rows["time"], rows["id"]))
        ids, nodes = rows["id"][order], rows["node"][order]
        first = np.ones(len(ids), bool)
        first[1:] = ids[1:] != ids[:-1]
        beginner = np.full(len(self.names), -1)
        beginner[ids[first]] = nodes[first]
        for number, node in enumerate(self.nodes):
            if node.update is None:
                continue
            mine = np.unique(rows["id"][(rows["node"] == number) & rows["write"]])
            fresh = np.array(
                [beginner[i] == number and self.names[i] not in self.before for i in mine], bool
            )
            if fresh.any() and not fresh.all():
                yield f"mixed-first-touch: {node.equation.target.name} at {node.path}"
            if not fresh.any():
                continue
            used = {
                n.name
                for s in node.equation.target.subscripts
                for n in nodes_of(s)
                if isinstance(n, Index)
            }
            scope = node.equation.target.scope
            owners = BLOCKS + THREADS if scope == "l" else BLOCKS if scope == "s" else ()
            reducing = [
                k
                for k, x in enumerate(node.loops)
                if x.extent > 1
                and x.index not in used
                and x.axis not in owners
                and (scope == "g" or k >= node.launch)
            ]
            if not reducing:
                continue
            depth = reducing[0]
            under = self._under(node.where[depth])
            wanted = np.nonzero(np.isin(rows["node"], under) & np.isin(rows["id"], mine[fresh]))[0]
            group = self._values(rows, wanted, range(depth))
            who = rows["node"][wanted]
            if _clash(group, rows["id"][wanted], who, np.ones(len(wanted), bool)) is not None:
                yield f"partial-value: {node.equation.target.name} at {node.path}"

    def _under(self, where: tuple[tuple[int, ...], int]) -> list[int]:
        return [i for i, n in enumerate(self.nodes) if where in n.where]

    def _loops(self, rows: dict[str, Array]) -> Iterator[str]:
        """No two iterations of a P, V or B loop touch an element of which one writes it."""
        seen = set()
        for node in self.nodes:
            for depth, (loop, where) in enumerate(zip(node.loops, node.where, strict=True)):
                if where in seen or loop.kind not in "PVB":
                    continue
                seen.add(where)
                under = self._under(where)
                wanted = np.nonzero(np.isin(rows["node"], under))[0]
                if not len(wanted):
                    continue
                outer: Sequence[int] = range(depth)
                if loop.kind == "B":
                    outer = [k for k in range(depth) if k < node.launch or node.loops[k].axis]
                group = self._values(rows, wanted, outer)
                now = self._values(rows, wanted, [depth])
                exempt = np.array([self._reduces(i, depth) for i in range(len(self.nodes))])
                who = np.where(
                    exempt[rows["node"][wanted]] & rows["own"][wanted], rows["node"][wanted], -1
                )
                ids, write = rows["id"][wanted], rows["write"][wanted]
                row = _clash(group, ids, now, write, who)
                if row is not None:
                    name = self.names[ids[row]][0]
                    yield f"loop-conflict: {loop.kind} loop {loop.index} at {where[0]}: {name}"

    def _reduces(self, number: int, depth: int) -> bool:
        """Whether the loop is a thread loop over which the node may accumulate."""
        node = self.nodes[number]
        if node.update is None or depth >= len(node.loops):
            return False
        loop = node.loops[depth]
        used = {
            n.name
            for s in node.equation.target.subscripts
            for n in nodes_of(s)
            if isinstance(n, Index)
        }
        scope = node.equation.target.scope
        return loop.axis in THREADS and loop.index not in used and scope != "l"

    def _blocks(self, rows: dict[str, Array]) -> Iterator[str]:
        """Within a launch, a global element that is written belongs to one block."""
        axes = [[x.axis for x in n.loops] for n in self.nodes]
        if not any(a in BLOCKS + THREADS for each in axes for a in each):
            return
        everything = np.arange(len(rows["id"]))
        block = np.zeros(len(everything), np.int64)
        launch = np.zeros(len(everything), np.int64)
        for number in range(len(self.nodes)):
            mine = everything[rows["node"] == number]
            common = min(n.launch for n in self.nodes)
            launch[mine] = self._values(rows, mine, range(common))
            for axis in BLOCKS:
                value = (
                    self._values(rows, mine, [axes[number].index(axis)])
                    if axis in axes[number]
                    else -1
                )
                block[mine] = block[mine] * 70000 + value + 1
        row = _clash(launch, rows["id"], block, rows["write"])
        if row is not None:
            yield f"cross-block: {self.names[rows['id'][row]][0]}"


def _grid(node: Node) -> list[Array]:
    """The values of every index, in the order of execution."""
    spans = [np.arange(x.start, x.start + x.extent) for x in node.loops]
    return [g.reshape(-1) for g in np.meshgrid(*spans, indexing="ij")]


def _clash(
    group: Array, ids: Array, now: Array, write: Array, who: Array | None = None
) -> int | None:
    """A row of an element that is written in its group and touched at different ``now``.

    Unless all that touch it are the same ``who``, which is not -1.
    """
    if not len(ids):
        return None
    order = np.lexsort((ids, group))
    change = np.ones(len(order), bool)
    change[1:] = (ids[order][1:] != ids[order][:-1]) | (group[order][1:] != group[order][:-1])
    starts = np.nonzero(change)[0]

    def differ(values: Array) -> Array:
        each = values[order]
        least: Array = np.minimum.reduceat(each, starts)
        most: Array = np.maximum.reduceat(each, starts)
        return np.not_equal(least, most)

    bad = np.logical_or.reduceat(write[order], starts) & differ(now)
    if who is not None:
        bad &= differ(who) | (np.minimum.reduceat(who[order], starts) < 0)
    return int(order[starts[np.nonzero(bad)[0][0]]]) if bad.any() else None
