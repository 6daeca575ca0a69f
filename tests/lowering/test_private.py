"""Memory of ``l`` and ``s`` tensors: launches and instances."""

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering.private import Instances, launch_depth, private_instances

HEADER = "# input A f32[4,8]\n# output D f32[4,8]\n"


def program(text: str) -> SignedProgram:
    return read(HEADER + text).signed


@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("L^{4}_{a=0}L^{8}_{c=0}[D^{f32,g}_{a,c}=1;];", 0),
        ("B^{4}_{bx=0}B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=1;];", 0),
        ("L^{4}_{a=0}B^{8}_{tx=0}[D^{f32,g}_{a,tx}=1;];", 1),
        ("L^{4}_{a=0}[B^{8}_{tx=0}[D^{f32,g}_{a,tx}=1;];B^{8}_{tx=0}[D^{f32,g}_{a,tx}=2;];];", 1),
        ("B^{4}_{bx=0}L^{1}_{a=0}[B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=1;];];", 0),
    ],
)
def test_launch_loops(text: str, depth: int) -> None:
    assert launch_depth(program(text).program.nests[0]) == depth


def test_one_thread_after_the_other_shares_memory() -> None:
    signed = program(
        "B^{4}_{bx=0}B^{8}_{tx=0}[F^{f32,l}=A^{f32,g}_{bx,tx};D^{f32,g}_{bx,tx}=F^{f32,l};];"
    )
    assert private_instances(signed.program) == {"F": Instances((), ())}


def test_sibling_thread_loops_need_an_instance_per_thread() -> None:
    signed = program(
        "B^{4}_{bx=0}[B^{8}_{tx=0}[F^{f32,l}=A^{f32,g}_{bx,tx};S^{f32,s}_{tx}=F^{f32,l};];"
        "B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=F^{f32,l}+S^{f32,s}_{7-tx};];];"
    )
    assert private_instances(signed.program) == {
        "F": Instances(("tx",), (8,)),
        "S": Instances((), ()),
    }


def test_a_serial_loop_outside_a_thread_loop_keeps_instances_apart() -> None:
    signed = program(
        "B^{4}_{bx=0}[B^{8}_{tx=0}[F^{f32,l}=0;];"
        "L^{3}_{a=0}B^{8}_{tx=0}[F^{f32,l}=F^{f32,l}+A^{f32,g}_{bx,tx};];"
        "B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=F^{f32,l};];];"
    )
    assert private_instances(signed.program)["F"] == Instances(("tx",), (8,))


def test_sibling_block_loops_need_an_instance_per_block() -> None:
    signed = program(
        "L^{1}_{a=0}[B^{4}_{bx=0}B^{8}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx};];"
        "B^{4}_{bx=0}B^{8}_{tx=0}[D^{f32,g}_{bx,tx}=S^{f32,s}_{tx};];];"
    )
    assert private_instances(signed.program)["S"] == Instances(("bx",), (4,))
