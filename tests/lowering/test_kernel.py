"""Running kernels: what goes in, what memory looks like, what is noticed afterwards."""

from pathlib import Path

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.lowering import InputError, compile_programs, run
from steptp_dagster.lowering.arena import ALIGNMENT, Arena, KernelFault, lay_out
from steptp_dagster.verify.zoo import originals


def outputs_of(text: str, **inputs: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> object:
    return run(read(text).signed, inputs)


def test_unwritten_memory_is_nan_or_a_pattern() -> None:
    text = "# output D f16[2]\n# output E i32[2]\nL^{1}_{a=0}[D^{f16,g}_{a}=1;E^{i32,g}_{a}=1;];"
    found = run(read(text).signed, {})
    assert found["D"][0] == 1
    assert np.isnan(found["D"][1])
    assert found["E"].tolist() == [1, -0x5A5A5A5B]


def test_an_overwritten_input_is_noticed() -> None:
    text = "# input A f32[2]\n# output D f32[2]\nL^{2}_{a=0}[A^{f32,g}_{a}=0;D^{f32,g}_{a}=1;];"
    with pytest.raises(KernelFault) as caught:
        outputs_of(text, A=np.ones(2, np.float32))
    assert caught.value.reason == "input-overwritten"


def test_a_write_outside_a_tensor_is_noticed() -> None:
    text = "# output D f32[2]\nL^{3}_{a=0}[D^{f32,g}_{a}=1;];"
    with pytest.raises(KernelFault) as caught:
        outputs_of(text)
    assert caught.value.reason == "out-of-bounds-write"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "A is missing"),
        ({"A": np.zeros((3, 9)), "C": np.zeros(5, int)}, r"A has shape \[3, 9\]"),
        ({"A": np.zeros((9, 3)), "C": np.zeros(5, int), "F": np.zeros(1)}, "no input .*: F"),
        ({"A": np.zeros((9, 3)), "C": np.zeros(5)}, "C holds float64, not i64"),
        ({"A": np.zeros((9, 3)), "C": np.full(5, 9)}, "leaves its range 0..8: 9"),
    ],
)
def test_inputs_that_do_not_fit(inputs: dict[str, object], message: str) -> None:
    kernel = compile_programs([read(originals.GATHER).signed])[0]
    with pytest.raises(InputError, match=message):
        kernel.run(inputs)  # type: ignore[arg-type]


def test_constants_are_part_of_the_program(tmp_path: Path) -> None:
    text = "# const K f32[2,2] = [1,2,3,4]\n# output D f32[2,2]\n"
    text += "L^{2}_{a=0}L^{2}_{c=0}[D^{f32,g}_{a,c}=K^{f32,g}_{c,a};];"
    assert run(read(text).signed, {})["D"].tolist() == [[1, 3], [2, 4]]


def test_tensors_are_aligned_and_apart() -> None:
    layout = lay_out([("A", "i8", (3,)), ("C", "f64", (5, 2)), ("D", "f16", ())])
    arena = Arena(layout)
    assert all(address % ALIGNMENT == 0 for address in arena.addresses)
    ends = [place.offset + place.size for place in layout.places]
    starts = [place.offset for place in layout.places[1:]]
    assert all(start - end >= ALIGNMENT for start, end in zip(starts, ends[:-1], strict=True))
    assert layout.size - ends[-1] >= ALIGNMENT
