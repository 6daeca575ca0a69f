"""The file form: headers, ranges, constants, and where an error stands."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steptp_dagster.leir.ast import Program
from steptp_dagster.leir.dtypes import DTYPES
from steptp_dagster.leir.fileform import (
    FileFormError,
    header_text,
    integer_range,
    read,
    read_signature,
    write,
)
from steptp_dagster.leir.parser import ParseError
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import Scalar, Signature, SignedProgram, Variable
from steptp_dagster.leir.texterror import TextError
from tests.support.syntax import SLOW, programs

TEXT = "B^{2}_{tx=0}[D^{f32,g}_{tx}=A^{f32,g}_{tx}*K^{f32,g};];"
FILE = f"""# A scaled copy.
# input A f32[2] in -1.5..2
#   const K f32[] = 0.125
# output D f32[2]
# output of the first layer: a comment
{TEXT}
"""
OUTPUT = Variable("output", "D", "f32", (2,))


def test_reads_header_and_program() -> None:
    found = read(FILE)
    assert found.notes == ()
    assert found.signed.signature.variables == (
        Variable("input", "A", "f32", (2,), low=-1.5, high=2.0),
        Variable("const", "K", "f32", (), values=(0.125,)),
        OUTPUT,
    )
    assert to_text(found.signed.program) == TEXT


def test_writes_the_canonical_form() -> None:
    assert write(read(FILE).signed) == (
        "# input A f32[2] in -1.5..2\n# const K f32[] = 0.125\n# output D f32[2]\n" + TEXT + "\n"
    )


@pytest.mark.parametrize(
    ("line", "variable"),
    [
        ("# input A f32[16,64]", Variable("input", "A", "f32", (16, 64))),
        ("#input  A   f32[ 16 , 64 ]", Variable("input", "A", "f32", (16, 64))),
        ("# input Y i64[16] in 0..9", Variable("input", "Y", "i64", (16,), low=0, high=9)),
        ("# input Y i8[1] in -128 .. 127", Variable("input", "Y", "i8", (1,), low=-128, high=127)),
        ("# param W f16[3] in 1e-3..1.", Variable("param", "W", "f16", (3,), low=1e-3, high=1.0)),
        ("# param W f64[] in -2.5..-1", Variable("param", "W", "f64", (), low=-2.5, high=-1.0)),
        ("# input M bool[2] in 0..1", Variable("input", "M", "bool", (2,), low=False, high=True)),
        ("# const K f32[] = -inf", Variable("const", "K", "f32", (), values=(float("-inf"),))),
        ("# const K i32[3] = [1, -2,3]", Variable("const", "K", "i32", (3,), values=(1, -2, 3))),
        (
            "# const K f32[2,2] = [1,0.5,1e-3,-4]",
            Variable("const", "K", "f32", (2, 2), values=(1.0, 0.5, 1e-3, -4.0)),
        ),
        (
            "# const K bool[2] = [true,0]",
            Variable("const", "K", "bool", (2,), values=(True, False)),
        ),
        ("# const K f32[1] = 7", Variable("const", "K", "f32", (1,), values=(7.0,))),
    ],
)
def test_declarations(line: str, variable: Variable) -> None:
    signature = read_signature(f"{line}\n# output D f32[2]\n")
    assert signature is not None
    assert signature.variables == (variable, OUTPUT)
    found = signature.variables[0]
    for value in (found.low, found.high, *(found.values or ())):
        kind = DTYPES[found.dtype].kind
        assert value is None or type(value) is {"float": float, "int": int, "bool": bool}[kind]
    assert read_signature(header_text(signature)) == signature


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        ("# input a f32[1]", 9, "tensor name"),
        ("# input Lx f32[1]", 9, "tensor name"),
        ("# input A", 10, "dtype"),
        ("# input A f33[1]", 11, "f16 bf16 f32"),
        ("# input A f32", 14, "shape"),
        ("# input A f32[1,", 15, "']'"),
        ("# input A f32[1,,2]", 15, "']'"),
        ("# input A f32[1,-1]", 15, "positive integers"),
        ("# input A f32[4,0]", 17, "at least 1"),
        ("# input A f32[1] 0..3", 18, "'in LOW..HIGH'"),
        ("# input A f32[1] in 3", 18, "'in LOW..HIGH'"),
        ("# input A f32[1] in 1..0", 21, "lower end"),
        ("# input A f32[1] in 0..inf", 24, "finite"),
        ("# input A f32[1] in 0..1e999", 24, "finite"),
        ("# input A i8[1] in 0..300", 23, "from -128 to 127"),
        ("# input A i8[1] in 0.5..3", 20, "integer of dtype i8"),
        ("# input A u8[1] in -1..3", 20, "from 0 to 255"),
        ("# input A f32[1] = 1", 18, "'in LOW..HIGH'"),
        ("# output A f32[1] in 0..1", 19, "end of the line"),
        ("# const K f32[]", 16, "'='"),
        ("# const K f32[] 1", 17, "'='"),
        ("# const K f32[] = nan", 19, "number of dtype f32"),
        ("# const K f32[2] = [1]", 20, "2 values"),
        ("# const K f32[2] = 3", 20, "2 values"),
        ("# const K f32[2] = [1,x]", 23, "number of dtype f32"),
        ("# const K f32[2] = [1,2", 24, "']'"),
        ("# const K f32[2] = k.npy", 20, "only an original"),
        ("# const K bool[] = 2", 20, "false or true"),
    ],
)
def test_errors_have_positions(line: str, column: int, expected: str) -> None:
    text = f"# first\n{line}\n# output D f32[2]\n{TEXT}"
    with pytest.raises(FileFormError, match=r"^expected ") as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == (2, column)
    assert expected in caught.value.message
    shown, caret = caught.value.excerpt.split("\n")
    assert shown == line
    assert caret == " " * (column - 1) + "^"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_doubled_names_and_missing_outputs() -> None:
    with pytest.raises(FileFormError, match="one declaration of D"):
        read(f"# output D f32[2]\n# input D f32[2]\n{TEXT}")
    with pytest.raises(FileFormError, match="at least one output") as caught:
        read(f"\n# input D f32[2]\n{TEXT}")
    assert caught.value.line == 2
    with pytest.raises(FileFormError, match="found none"):
        read(TEXT)


def test_a_candidate_inherits_the_signature() -> None:
    signature = read(FILE).signed.signature
    assert read(TEXT, inherit=signature).signed == read(FILE).signed
    assert read(f"# a remark\n{TEXT}", inherit=signature).signed == read(FILE).signed
    own = read(FILE.replace("0.125", "2"), inherit=signature).signed.signature
    assert own.by_name["K"].values == (2.0,)


def test_positions_in_the_program_are_those_of_the_file() -> None:
    with pytest.raises(ParseError) as caught:
        read(FILE.replace("*K", "*\n# in between\n  ]"))
    assert (caught.value.line, caught.value.column) == (8, 3)
    noted = read(FILE.replace("K^{f32,g}", "K^{f64,g}"))
    assert [(n.line, n.column) for n in noted.notes] == [(6, 44)]
    assert noted.signed == read(FILE).signed


def test_line_ends_and_byte_order_marks() -> None:
    assert read("\ufeff" + FILE.replace("\n", "\r\n")).signed == read(FILE).signed


def test_npy_files(tmp_path: Path) -> None:
    values = np.array([[1.5, 2.0], [-3.0, np.inf]], dtype=np.float32)
    np.save(tmp_path / "k.npy", values)
    header = "# const K f32[2,2] = k.npy\n# output D f32[2]\n"
    signature = read(header + TEXT, base=tmp_path).signed.signature
    assert signature.by_name["K"].values == (1.5, 2.0, -3.0, float("inf"))
    assert "= [1.5,2,-3,inf]\n" in header_text(signature)
    assert read_signature(header_text(signature)) == signature
    for bad, why in (
        (header.replace("f32[2,2]", "f32[4]"), "shape"),
        (header.replace("K f32", "K f64"), "dtype"),
        (header.replace("k.npy", "missing.npy"), "cannot be read"),
        (header.replace("k.npy", "../k.npy"), "outside"),
        (header.replace("k.npy", "/etc/k.npy"), "outside"),
        (header.replace("k.npy", "a\0.npy"), "path"),
    ):
        with pytest.raises(FileFormError, match=why) as caught:
            read(bad + TEXT, base=tmp_path)
        assert (caught.value.line, caught.value.column) == (1, bad.index("=") + 3)
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "nan.npy", np.full((2, 2), np.nan, dtype=np.float32))
    (tmp_path / "broken.npy").write_bytes(b"not an array")
    for name in ("pickled", "nan", "broken"):
        with pytest.raises(FileFormError):
            read(header.replace("k.npy", f"{name}.npy") + TEXT, base=tmp_path)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.npy").symlink_to(tmp_path / "k.npy")
    with pytest.raises(FileFormError, match="outside"):
        read(header.replace("k.npy", "link.npy") + TEXT, base=inner)


@given(
    st.sampled_from(["input A f32[4]", "const K i8[2] = [1,2]", "output D f32[2] in 0..1"]),
    st.integers(0, 30),
    st.text(alphabet="#[]=.,-+e0129 infAaf32npy\x00é\n", max_size=6),
)
@settings(suppress_health_check=SLOW)
def test_damaged_headers_fail_cleanly(line: str, at: int, put: str) -> None:
    try:
        read(f"# {line[:at]}{put}{line[at + 1 :]}\n# output Q f32[1]\n{TEXT}")
    except TextError as error:
        assert error.message.startswith("expected ")


def _scalars(dtype: str) -> st.SearchStrategy[Scalar]:
    kind = DTYPES[dtype]
    if kind.kind == "bool":
        return st.booleans()
    if kind.is_integer:
        return st.integers(*integer_range(kind))
    return st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def _signatures(draw: st.DrawFn) -> Signature:
    found = [OUTPUT]
    for name in draw(st.lists(st.sampled_from(["A", "C", "E", "Kaa"]), unique=True, max_size=3)):
        dtype = draw(st.sampled_from(list(DTYPES)))
        if draw(st.booleans()):
            values = tuple(draw(st.lists(_scalars(dtype), min_size=2, max_size=2)))
            found.append(Variable("const", name, dtype, (1, 2), values=values))
        else:
            low, high = sorted(draw(st.tuples(_scalars(dtype), _scalars(dtype))))
            found.append(Variable("input", name, dtype, (3,), low=low, high=high))
    return Signature(tuple(found))


@given(_signatures())
@settings(suppress_health_check=SLOW)
def test_signatures_round_trip(signature: Signature) -> None:
    text = header_text(signature)
    again = read_signature(text)
    assert again == signature
    assert repr(again) == repr(signature)  # also the sign of zero and int against float


@given(programs(), _signatures())
@settings(suppress_health_check=SLOW)
def test_files_round_trip(program: Program, signature: Signature) -> None:
    first = read(write(SignedProgram(program, signature))).signed
    assert read(write(first)).signed == first
    assert write(read(write(first)).signed) == write(first)
