"""Cubins without a GPU: many kernels at a time, each text once, errors in the compiler's words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.lowering.cuda import cubins, kept, nvrtc
from steptp_dagster.lowering.cuda.cubins import CompiledKernel, compile_kernels
from steptp_dagster.lowering.cuda.lower import lower
from steptp_dagster.lowering.cuda.nvrtc import CudaBuildError, Usage
from steptp_dagster.lowering.cuda.program import CudaProgram

pytestmark = pytest.mark.skipif(not nvrtc.available(), reason="no NVRTC to build cubins with")

SCALED = """# input A f32[8]
# output D f32[8]
B^{8}_{tx=0}[C^{f32,g}_{tx}=A^{f32,g}_{tx}*FACTOR;];
B^{8}_{tx=0}[D^{f32,g}_{tx}=exp(C^{f32,g}_{tx});];
"""


def program(factor: int) -> CudaProgram:
    return lower(read(SCALED.replace("FACTOR", str(factor))).signed)


def test_a_kernel_that_programs_share_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubins, "_cache", type(cubins._cache)())
    texts: list[int] = []
    build = nvrtc.build_text

    def counted(source: str, threads: dict[str, int], *args: object, **kwargs: object) -> object:
        texts.append(len(threads))
        return build(source, threads, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(cubins, "build_text", counted)
    first, second = compile_kernels([program(2), program(3)], "sm_90")
    assert not isinstance(first, CudaBuildError)
    assert not isinstance(second, CudaBuildError)
    assert texts == [3]
    assert first[0].entry != second[0].entry
    assert first[1] == second[1]
    assert first[1].entry.encode() in first[1].code
    assert [k.usage.kernel for k in first] == ["kernel_0", "kernel_1"]
    assert all(k.usage.registers > 0 for k in first)
    (again,) = compile_kernels([program(3)], "sm_90")
    assert again == second
    assert texts == [3]


def test_an_error_is_the_kernels_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubins, "_cache", type(cubins._cache)())
    good = program(2)
    broken = replace(good, texts=(good.texts[0].replace("A_data[", "B_data["), good.texts[1]))
    found, refused = compile_kernels([good, broken], "sm_80")
    assert not isinstance(found, CudaBuildError)
    assert isinstance(refused, CudaBuildError)
    assert "kernel_0 of nest 0" in str(refused)
    assert "B_data" in str(refused)


def test_figures_do_not_depend_on_what_is_compiled_together() -> None:
    whole = nvrtc.build(program(5), "sm_90").usage
    (kernels,) = compile_kernels([program(5)], "sm_90")
    assert not isinstance(kernels, CudaBuildError)
    assert tuple(k.usage for k in kernels) == whole


def usages(built: Sequence[Sequence[CompiledKernel] | CudaBuildError]) -> list[Usage]:
    """What kernels take; their code may be made together with others or alone."""
    assert not any(isinstance(kernels, CudaBuildError) for kernels in built)
    return [
        k.usage for kernels in built if not isinstance(kernels, CudaBuildError) for k in kernels
    ]


def test_cubins_stay_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kept, "_folder", [])
    kept.use(tmp_path / "cubins")
    monkeypatch.setattr(cubins, "_cache", type(cubins._cache)())
    first = compile_kernels([program(7)], "sm_90")
    files = sorted((tmp_path / "cubins").iterdir())
    assert [f.suffix for f in files].count(".cubin") == 1
    assert [f.suffix for f in files].count(".kernel") == 2

    def never(*_: object, **__: object) -> NoReturn:
        raise AssertionError("compiled again")

    build = nvrtc.build_text
    monkeypatch.setattr(cubins, "build_text", never)
    monkeypatch.setattr(cubins, "_cache", type(cubins._cache)())
    assert compile_kernels([program(7)], "sm_90") == first
    monkeypatch.setattr(cubins, "_cache", type(cubins._cache)())
    with pytest.raises(AssertionError):
        compile_kernels([program(7)], "sm_80")
    with pytest.raises(AssertionError):
        compile_kernels([program(7)], "sm_90", contract=True)
    monkeypatch.setattr(cubins, "build_text", build)
    (cubin,) = (f for f in files if f.suffix == ".cubin")
    kernel = next(f for f in files if f.suffix == ".kernel")
    for file, damaged in (
        (cubin, cubin.read_bytes()[:-1]),
        (kernel, b"\xff\xfe"),
        (kernel, kernel.read_bytes().replace(b'"registers": ', b'"registers": 9')),
    ):
        file.write_bytes(damaged)
        monkeypatch.setattr(cubins, "_cache", type(cubins._cache)())
        assert usages(compile_kernels([program(7)], "sm_90")) == usages(first)
    (tmp_path / "cubins" / "a folder").mkdir()
    monkeypatch.setattr(kept, "MOST_BYTES", 0)
    kept.use(tmp_path / "cubins")
    assert [f.name for f in (tmp_path / "cubins").iterdir()] == ["a folder"]
