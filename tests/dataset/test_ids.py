import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.dataset import ids

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(_VALUES, _VALUES)
def test_digests_differ_where_values_do(a: ids.Json, b: ids.Json) -> None:
    same = ids.canonical_json(a) == ids.canonical_json(b)
    assert (ids.digest("x", a) == ids.digest("x", b)) == same


def test_key_order_does_not_matter() -> None:
    assert ids.digest("x", {"a": 1, "b": 2}) == ids.digest("x", {"b": 2, "a": 1})


def test_parts_do_not_run_together() -> None:
    assert ids.digest("x", "ab", "c") != ids.digest("x", "a", "bc")


def test_another_process_finds_the_same_id() -> None:
    code = "from steptp_dagster.dataset import ids; print(ids.digest('x', {'a': [1, 2.5]}, 'é'))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={}
    )
    assert out.stdout.strip() == ids.digest("x", {"a": [1, 2.5]}, "é")
