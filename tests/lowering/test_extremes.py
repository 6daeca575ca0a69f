"""Maximum and minimum: NaN wins, and long chains stay linear."""

import numpy as np
import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.lowering import compile_programs


@pytest.mark.parametrize("function", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "u8"])
@pytest.mark.parametrize("deep", ["left", "right"])
def test_a_chain_of_sixty(function: str, dtype: str, deep: str) -> None:
    # Written out as comparisons and selections, this would have more than 2**60 nodes.
    terms = [f"A^{{{dtype},g}}_{{tx,{i}}}" for i in range(60)]
    chain = terms[0]
    for term in terms[1:]:
        chain = f"{function}({chain},{term})" if deep == "left" else f"{function}({term},{chain})"
    text = (
        f"# input A {dtype}[4,60]\n# output D {dtype}[4]\n"
        f"B^{{4}}_{{tx=0}}[D^{{{dtype},g}}_{{tx}}={chain};];"
    )
    (kernel,) = compile_programs([read(text).signed], "working")
    kind = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "u8": np.uint8}[dtype]
    values = (np.random.default_rng(0).random((4, 60)) * 200).astype(kind)
    expected = values.max(1) if function == "max" else values.min(1)
    assert np.array_equal(kernel.run({"A": values})["D"], expected)


@pytest.mark.parametrize("function", ["max", "min"])
@pytest.mark.parametrize("poisoned", [0, 1])
def test_nan_is_not_hidden(function: str, poisoned: int) -> None:
    text = (
        "# input A f32[2]\n# output D f32[]\n"
        f"B^{{1}}_{{tx=0}}[D^{{f32,g}}={function}(A^{{f32,g}}_{{0}},A^{{f32,g}}_{{1}});];"
    )
    (kernel,) = compile_programs([read(text).signed], "working")
    values = np.ones(2, np.float32)
    values[poisoned] = np.nan
    assert np.isnan(kernel.run({"A": values})["D"])
