"""Recurrent layers: one serial loop over time, however long the sequence is.

PyTorch would decompose ``nn.LSTM`` and its relatives into one copy of the cell for every step. Here
a layer is four parts: the inputs' share of the gates for all times at once, the first state, the
loop over time (the state's share of the gates, then the cell), and views of the states it went
through. Tensors of states have one more time than the sequence, the first being the initial one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from steptp_dagster.leir.ast import Access, Expr
from steptp_dagster.translate.builder import target
from steptp_dagster.translate.coords import Coord, Coords, constant
from steptp_dagster.translate.operators import Call, Unsupported, operator
from steptp_dagster.translate.scalars import ONE, ZERO, add, mul, sigmoid, sub
from steptp_dagster.translate.scalars import call as apply
from steptp_dagster.translate.values import Value

#: Gates: (shares of the input and of the state of gate number k at the cell's element).
Gates = Callable[[int], tuple[Expr, Expr]]
#: New states from gates, the states before, and where the new ones are stored (memory is first).
Cell = Callable[[Gates, Sequence[Expr], Sequence[Expr]], list[Expr]]


def _lstm(gates: Gates, before: Sequence[Expr], now: Sequence[Expr]) -> list[Expr]:
    """Hidden state, then memory, which is computed first."""
    i, f, g, o = (add(*gates(k)) for k in range(4))
    memory = add(mul(sigmoid(f), before[1]), mul(sigmoid(i), apply("tanh", g)))
    return [mul(sigmoid(o), apply("tanh", now[1])), memory]


def _gru(gates: Gates, before: Sequence[Expr], _now: Sequence[Expr]) -> list[Expr]:
    """A blend of the state and a candidate."""
    reset, update = (sigmoid(add(*gates(k))) for k in range(2))
    of_input, of_state = gates(2)
    candidate = apply("tanh", add(of_input, mul(reset, of_state)))
    return [add(mul(sub(ONE, update), candidate), mul(update, before[0]))]


def _plain(activation: Callable[[Expr], Expr]) -> Cell:
    return lambda gates, _before, _now: [activation(add(*gates(0)))]


#: Operator -> the number of gates, of states, and the cell.
CELLS: Final[dict[str, tuple[int, int, Cell]]] = {
    "aten.lstm.input": (4, 2, _lstm),
    "aten.gru.input": (3, 1, _gru),
    "aten.rnn_tanh.input": (1, 1, _plain(lambda x: apply("tanh", x))),
    "aten.rnn_relu.input": (1, 1, _plain(lambda x: apply("max", x, ZERO))),
}


@dataclass(frozen=True, slots=True)
class _Weights:
    """The parameters of one layer in one direction."""

    of_input: Value
    of_state: Value
    biases: tuple[Value, ...]
    projection: Value | None


def _weights(params: list[Value], has_biases: bool, projected: bool) -> Iterator[_Weights]:
    count = 2 + 2 * has_biases + projected
    for start in range(0, len(params), count):
        of_input, of_state, *rest = params[start : start + count]
        biases = tuple(rest[:2]) if has_biases else ()
        yield _Weights(of_input, of_state, biases, rest[-1] if projected else None)


@operator(*CELLS)
def recurrent(
    op: Call,
    x: Value,
    first: list[Value] | Value,
    params: list[Value],
    has_biases: bool,
    _layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """Layers of one kind of cell, each in one or both directions of time."""
    if train and dropout:
        raise Unsupported("dropout", "random numbers in training; call .eval() or leave it 0")
    states = first if isinstance(first, list) else [first]
    projected = len(states) > 1 and states[0].shape[-1] != states[1].shape[-1]
    current = _time_first(x) if batch_first else x
    directions = 2 if bidirectional else 1
    last: list[list[Value]] = [[] for _ in states]
    for number, weights in enumerate(_weights(params, has_biases, projected)):
        reverse = bool(bidirectional and number % 2)
        initial = [_at_time(state, number) for state in states]
        if number % directions == 0:
            layer_input, parts = current, []
        runs = _layer(op, layer_input, initial, weights, reverse)
        parts.append(_sequence(runs[0], reverse))
        for ends, run in zip(last, runs, strict=True):
            ends.append(_at_time(run, run.shape[0] - 1))
        if number % directions == directions - 1:
            current = parts[0] if len(parts) == 1 else _side_by_side(op, parts)
    result = _time_first(current) if batch_first else current
    ends = [_stacked(op, part) if i + 1 in op.used else part[0] for i, part in enumerate(last)]
    return (result, *ends)


def _layer(
    op: Call, x: Value, initial: list[Value], weights: _Weights, reverse: bool
) -> list[Value]:
    """The states of one layer in one direction at times 0 (the initial ones) .. length."""
    gates, _, cell = CELLS[op.name]
    (length, batch, features), size = x.shape, weights.of_state.shape[0] // gates
    kind, narrow = op.accumulator, weights.projection
    in_order = x.view(x.shape, lambda c: (-c[0] + (length - 1), *c[1:])) if reverse else x

    def of_input(c: Coords, taps: Coords) -> Expr:
        return mul(in_order(c[0], c[1], *taps), weights.of_input(c[2], *taps))

    shape = (length, batch, gates * size)
    shared = op.builder.reduce(shape, kind, (features,), add, of_input)
    runs = [op.builder.tensor((length + 1, *state.shape), op.dtype) for state in initial]
    for run, state in zip(runs, initial, strict=True):
        op.builder.write_part(run, state.view((1, *state.shape), lambda c: c[1:]), 0, 0)
    own = op.builder.tensor(shape, kind)
    wide = None if narrow is None else op.builder.tensor((length, batch, size), op.dtype)
    with op.builder.repeated(length) as time:

        def of_state(c: Coords, taps: Coords) -> list[tuple[Access, Expr]]:
            at = target(own, (time, *c))
            return [(at, add(at, mul(runs[0](time, c[0], *taps), weights.of_state(c[1], *taps))))]

        def step(c: Coords, _: Coords) -> list[tuple[Access, Expr]]:
            def share(k: int) -> tuple[Expr, Expr]:
                gate = c[1] + k * size
                both = [shared(time, c[0], gate), own(time, c[0], gate)]
                for i, bias in enumerate(weights.biases):
                    both[i] = add(both[i], bias(gate))
                return both[0], both[1]

            now = [target(run, (time + 1, *c)) for run in runs]
            if wide is not None:
                now[0] = target(wide, (time, *c))
            new = cell(share, [run(time, *c) for run in runs], now)
            return list(zip(now, new, strict=True))[::-1]

        op.builder.nest(shape[1:], (weights.of_state.shape[1],), of_state)
        op.builder.nest((batch, size), (), step)
        if wide is not None and narrow is not None:
            _projected(op, wide, narrow, runs[0], time)
    return runs


def _projected(op: Call, wide: Value, projection: Value, run: Value, time: Coord) -> None:
    """The narrow state of the next time from the wide one."""
    total = op.builder.tensor((wide.shape[0], *run.shape[1:]), op.accumulator)

    def narrow(c: Coords, taps: Coords) -> list[tuple[Access, Expr]]:
        at = target(total, (time, *c))
        return [(at, add(at, mul(wide(time, c[0], *taps), projection(c[1], *taps))))]

    op.builder.nest(run.shape[1:], (wide.shape[2],), narrow)
    op.builder.nest(
        run.shape[1:], (), lambda c, _: [(target(run, (time + 1, *c)), total(time, *c))]
    )


def _time_first(x: Value) -> Value:
    return x.view((x.shape[1], x.shape[0], x.shape[2]), lambda c: (c[1], c[0], c[2]))


def _at_time(x: Value, time: int) -> Value:
    return x.view(x.shape[1:], lambda c: (constant(time), *c))


def _sequence(run: Value, reverse: bool) -> Value:
    """The states after each step, in the order of the sequence."""
    length = run.shape[0] - 1

    def back(c: Coords) -> Coords:
        return (-c[0] + length, *c[1:]) if reverse else (c[0] + 1, *c[1:])

    return run.view((length, *run.shape[1:]), back)


def _side_by_side(op: Call, parts: list[Value]) -> Value:
    """Both directions in one tensor of features."""
    size = parts[0].shape[-1]
    both = op.builder.tensor((*parts[0].shape[:-1], size * len(parts)), op.dtype)
    for i, part in enumerate(parts):
        op.builder.write_part(both, part, 2, i * size)
    return both


def _stacked(op: Call, parts: list[Value]) -> Value:
    """The last states of all layers and directions."""
    if len(parts) == 1:
        return parts[0].view((1, *parts[0].shape), lambda c: c[1:])
    stacked = op.builder.tensor((len(parts), *parts[0].shape), op.dtype)
    for i, part in enumerate(parts):
        op.builder.write_part(stacked, part.view((1, *part.shape), lambda c: c[1:]), 0, i)
    return stacked
