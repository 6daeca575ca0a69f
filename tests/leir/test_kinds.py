from steptp_dagster.leir.ast import Kind
from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.kinds import kind_legal, with_kind
from steptp_dagster.leir.printer import to_text
from steptp_dagster.leir.signature import SignedProgram

MATMUL = """# input A f32[16,8]
# param W f32[8,12]
# output D f32[16,12]
L^{16}_{a=0}L^{12}_{c=0}L^{8}_{d=0}[D^{f32,g}_{a,c}=D^{f32,g}_{a,c}+A^{f32,g}_{a,d}*W^{f32,g}_{d,c};];
"""


def matmul() -> SignedProgram:
    return read(MATMUL).signed


def kinds(index: str, kind: Kind, axis: str = "tx") -> list[str]:
    return [v.kind for v in kind_legal(matmul(), (0,), index, kind, axis)]


def test_spatial_loops_take_every_parallel_kind() -> None:
    assert kinds("a", "P") == []
    assert kinds("a", "B") == []
    assert kinds("a", "B", "bx") == []
    assert kinds("c", "U") == []


def test_the_reduction_loop_takes_threads_only() -> None:
    assert kinds("d", "P") == ["loop-conflict"]
    assert kinds("d", "V") == ["loop-conflict"]
    assert kinds("d", "B", "bx") == ["loop-conflict"]
    assert kinds("d", "B", "tx") == []
    assert kinds("d", "U") == []


def test_vector_loops_are_innermost_and_of_legal_width() -> None:
    assert kinds("a", "V") == ["vector-not-innermost"]
    assert kinds("c", "V") == ["vector-not-innermost", "vector-width"]


def test_binding_renames_the_index_everywhere() -> None:
    bound = with_kind(matmul(), (0,), "a", "B", "by")
    assert to_text(bound.program).startswith("B^{16}_{by=0}L^{12}_{c=0}")
    assert "_{by,c}" in to_text(bound.program)
    again = with_kind(bound, (0,), "c", "B", "by")
    assert "B^{12}_{bya=0}" in to_text(again.program)
    back = with_kind(bound, (0,), "by", "L")
    assert to_text(back.program) == to_text(matmul().program)
