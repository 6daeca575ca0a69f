"""Verdicts on CUDA targets: built without a GPU, executed on a stub driver that runs kernels."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steptp_dagster.leir.fileform import read
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.lowering import run
from steptp_dagster.lowering.cuda import device, nvrtc
from steptp_dagster.lowering.cuda.driver import Driver, DriverError, Loaded, NoGpu
from steptp_dagster.lowering.cuda.lower import lower
from steptp_dagster.lowering.precision import in_precision
from steptp_dagster.verify import cuda, reasons
from steptp_dagster.verify.batch import verify_batch
from steptp_dagster.verify.engine import Engine
from steptp_dagster.verify.families import FAMILIES, inputs
from steptp_dagster.verify.gpu import fits, gpu_here, without
from steptp_dagster.verify.record import Verdict
from steptp_dagster.verify.verdict import verify
from tests.support.cuda_emulator import COMPILER
from tests.support.stub_driver import StubCompiler, build_driver

TARGET = "cuda:sm_90"
needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason="no NVRTC to build cubins with")

SUM = """# input A f32[6,8]
# output D f32[6]
B^{6}_{bx=0}L^{8}_{a=0}[D^{f32,g}_{bx}=D^{f32,g}_{bx}+A^{f32,g}_{bx,a};];
"""
#: By the threads of a block, through shared memory: the order of the terms differs.
TREE = """B^{6}_{bx=0}[
  B^{4}_{tx=0}[S^{f32,s}_{tx}=A^{f32,g}_{bx,tx}+A^{f32,g}_{bx,tx+4};];
  B^{4}_{tx=0}[D^{f32,g}_{bx}=D^{f32,g}_{bx}+S^{f32,s}_{tx};];];
"""
LOST = TREE.replace("tx+4}", "tx}")
#: The host repeats launches; the local tensor would have to live from one to the next.
ACROSS = """L^{1}_{c=0}[
  B^{6}_{bx=0}[D^{f32,g}_{bx}=A^{f32,g}_{bx,0};];
  B^{6}_{bx=0}[D^{f32,g}_{bx}=D^{f32,g}_{bx}+A^{f32,g}_{bx,1}+A^{f32,g}_{bx,2}+A^{f32,g}_{bx,3}
    +A^{f32,g}_{bx,4}+A^{f32,g}_{bx,5}+A^{f32,g}_{bx,6}+A^{f32,g}_{bx,7};];];
"""


def original() -> SignedProgram:
    return read(SUM).signed


def candidate(text: str) -> SignedProgram:
    return read(text, inherit=original().signature).signed


@needs_nvrtc
def test_without_a_gpu_a_pair_is_built_and_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_drivers", {"": NoGpu("none")})
    verdict = verify(original(), candidate(TREE), target=TARGET)
    assert (verdict.equality, verdict.evidence, verdict.target) == ("built", "built", TARGET)
    assert (verdict.accepted, verdict.bitwise, verdict.reason) == (False, False, "not-executed")
    assert verdict.message == without("sm_90")
    assert verdict.families == ()
    (kernel,) = verdict.kernels
    assert (kernel.grid, kernel.block, kernel.nest) == ((6, 1, 1), (4, 1, 1), 0)
    assert kernel.registers > 0
    assert kernel.barriers > 0
    assert kernel.shared_bytes >= 16
    assert 0 < kernel.occupancy <= 1
    assert len(verdict.original_kernels) == 1
    assert dict(verdict.versions)["nvrtc"] != "absent"


@needs_nvrtc
def test_what_is_built_is_checked_statically_first() -> None:
    verdict = verify(original(), candidate(SUM.splitlines()[-1].replace("6", "5")), target=TARGET)
    assert (verdict.equality, verdict.reason) == ("rejected", reasons.INVALID)
    assert verdict.kernels == ()


@needs_nvrtc
def test_the_compilers_words_are_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[object]:
        return [nvrtc.CudaBuildError("kernel_0 of nest 0: ptxas error : too much of it")]

    monkeypatch.setattr(cuda, "compile_kernels", refuse)
    verdict = verify(original(), candidate(TREE), target=TARGET)
    assert (verdict.accepted, verdict.reason) == (False, reasons.BUILD_ERROR)
    assert "the original: kernel_0 of nest 0: ptxas error" in verdict.message


@needs_nvrtc
def test_large_programs_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_drivers", {"": NoGpu("none")})
    text = SUM.replace("6", "60000").replace("8", "8192")
    large = read(text).signed
    assert verify(large, large, target=TARGET).equality == "built"
    assert verify(large, large).reason == reasons.TOO_LARGE


@needs_nvrtc
def test_batches_say_what_single_verdicts_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_drivers", {"": NoGpu("none")})
    pairs = [(original(), candidate(text)) for text in (TREE, LOST, SUM)]
    assert verify_batch(pairs, target=TARGET) == [verify(o, c, target=TARGET) for o, c in pairs]


@dataclass
class Stub:
    """The stub driver, with the compiler for it put in NVRTC's place."""

    library: Path
    driver: Driver
    compiler: StubCompiler

    def count(self, what: str) -> int:
        return int(getattr(ctypes.CDLL(str(self.library)), f"stub_{what}")())


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Stub:
    if COMPILER is None:
        pytest.skip("no g++ to make a stub driver with")
    folder = tmp_path_factory.mktemp("stub")
    library, compiler = build_driver(folder), StubCompiler(folder)
    programs = [original(), *(candidate(text) for text in (TREE, LOST, ACROSS))]
    both = [in_precision(p, kind) for p in programs for kind in ("working", "float64")]
    compiler([lower(p) for p in both], "sm_90")
    return Stub(library, Driver(str(library)), compiler)


@pytest.fixture
def stub(compiled: Stub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setattr(device, "_drivers", {"": compiled.driver})
    monkeypatch.setattr(cuda, "compile_kernels", compiled.compiler)
    before = compiled.count("modules")
    yield compiled
    assert compiled.count("modules") == before
    assert compiled.count("allocations") == 0


def test_a_right_pair_is_accepted_on_the_gpu(stub: Stub) -> None:
    verdict = verify(original(), candidate(TREE), target=TARGET)
    assert (verdict.accepted, verdict.equality) == (True, "reassociated")
    assert (verdict.evidence, verdict.reason, verdict.target) == ("executed", None, TARGET)
    assert len(verdict.families) >= 10
    assert verdict.kernels


def test_a_wrong_pair_is_rejected_on_the_gpu(stub: Stub) -> None:
    verdict = verify(original(), candidate(LOST), target=TARGET)
    assert (verdict.accepted, verdict.reason) == (False, reasons.MATHEMATICS)


def test_launches_in_turn_are_exact(stub: Stub) -> None:
    verdict = verify(original(), candidate(ACROSS), target=TARGET)
    assert (verdict.accepted, verdict.bitwise) == (True, True)


def test_another_architecture_is_only_built(stub: Stub) -> None:
    assert not stub.driver.runs("sm_80")
    assert stub.driver.runs("sm_90")
    verdict = verify(original(), candidate(TREE), target="cuda:sm_80")
    assert verdict.equality == "built"


def runner(stub: Stub, program: SignedProgram) -> device.DeviceKernel:
    lowered = lower(program)
    (kernels,) = stub.compiler([lowered], "sm_90")
    assert not isinstance(kernels, nvrtc.CudaBuildError)
    codes = device.kernel_codes(lowered, kernels)
    loaded = Loaded(stub.driver, codes, device.launches(lowered))
    return device.DeviceKernel(program, "working", lowered, loaded)


def test_runs_agree_with_the_llvm_target_and_are_timed(stub: Stub) -> None:
    kernel = runner(stub, original())
    data = inputs(original().signature, FAMILIES[0], 0)
    assert kernel.run(data)["D"].tolist() == run(original(), data)["D"].tolist()
    times = kernel.times(data, repeats=5)
    assert len(times) == 5
    assert all(t >= 0 for t in times)
    kernel.loaded.close()


def fault(stub: Stub, monkeypatch: pytest.MonkeyPatch, error: DriverError) -> Verdict:
    def fail(self: Loaded, memory: object) -> None:
        raise error

    monkeypatch.setattr(Loaded, "run", fail)
    seed = 77  # nothing of the original is remembered
    return verify(original(), candidate(TREE), target=TARGET, seed=seed)


def test_a_fault_of_the_gpu_costs_one_verdict(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stub.count("resets")
    verdict = fault(stub, monkeypatch, DriverError("cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"))
    assert (verdict.accepted, verdict.reason) == (False, reasons.CRASHED)
    assert "ILLEGAL_ADDRESS" in verdict.message
    assert stub.count("resets") == before + 1
    assert device._drivers == {}


def test_a_gpu_without_memory_is_not_spoilt(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DriverError, match="OUT_OF_MEMORY") as raised, stub.driver.memory(2**40):
        pass
    before = stub.count("resets")
    verdict = fault(stub, monkeypatch, raised.value)
    assert verdict.reason == reasons.OUT_OF_MEMORY
    assert stub.count("resets") == before


def test_no_driver_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoGpu, match="no CUDA driver"):
        Driver(str(tmp_path / "libcuda.so.1"))


def test_a_device_that_is_not_there_is_said_in_words(compiled: Stub) -> None:
    with pytest.raises(NoGpu, match="no GPU: cuDeviceGet"):
        Driver(str(compiled.library), device=1)


def test_the_gpu_here_is_told_by_another_process(compiled: Stub, tmp_path: Path) -> None:
    told = gpu_here(str(compiled.library))
    assert told == f"stub, compute capability 9.0, driver {compiled.driver.version}"
    assert gpu_here(str(tmp_path / "libcuda.so.1")) == ""
    for architecture, runs in (("sm_80", False), ("sm_90", True), ("sm_100", False)):
        assert fits(told, architecture) is compiled.driver.runs(architecture) is runs
        assert not fits("", architecture)
    assert fits("NVIDIA A40, compute capability 8.6, driver 12040", "sm_80")
    assert not fits("NVIDIA A100, compute capability 8.0, driver 12040", "sm_86")


def test_the_gpu_is_an_engine(compiled: Stub) -> None:
    engine: Engine = cuda.CudaEngine(TARGET, compiled.driver)
    assert engine.target == TARGET
