"""Everything about GPUs that cannot be checked without one, in one run of a few minutes.

    python benchmarks/gpu_check.py --prepare DIR     # anywhere, with NVRTC; no GPU is needed
    python DIR/gpu_check.py --run DIR                # where the GPU is

``--prepare`` compiles programs of many kinds, and what strategies make of them, for sm_80 and
sm_90, runs the small ones on the llvm target, and packs cubins, launch lists, memory images and
expected results into a folder. ``--run`` needs the folder, Python, NumPy and the CUDA driver,
nothing else. It runs every program with poisoned memory and compares: inputs and guard zones
untouched, binary64 within 1e-11 of llvm, working precision within 8 times llvm's error and 16
epsilons, integers equal; large programs in pairs, since the llvm target is too slow for them. Then
every program is timed by events, with fused multiply-add. A table is printed, the figures are
written to DIR/result.json; exit code 1 where anything fails.
"""

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from steptp_dagster.leir.signature import SignedProgram
    from steptp_dagster.lowering.cuda.cubins import CompiledKernel
    from steptp_dagster.lowering.cuda.driver import Driver, Loaded, Repeat, Step
    from steptp_dagster.lowering.cuda.program import CudaProgram
    from steptp_dagster.lowering.precision import Precision

ARCHITECTURES = ("sm_80", "sm_90")
MATHEMATICS = 1e-11
ERROR_FACTOR, ERROR_SLACK = 8.0, 16.0
GUARD_BYTE = 0xC5
REPEATS = 20
#: Programs made by strategies, of each original.
STEPS = 6
SEED = 0

Array = np.ndarray[Any, np.dtype[Any]]
#: Compiles lowered programs (programs, architecture, contract=...), ``cubins.compile_kernels``.
Compiler = Callable[..., Sequence[Any]]


# --- running: nothing but NumPy and the driver ----------------------------------------------


@dataclass
class Outcome:
    """One program in one precision: whether it passed, why not, how near, how fast.

    ``difference`` is normalised in binary64, in epsilons of the output otherwise. Times are
    milliseconds of a run: median, least and most of ``REPEATS``.
    """

    name: str
    precision: str
    passed: bool
    reason: str = ""
    bitwise: bool | None = None
    difference: float | None = None
    median_ms: float | None = None
    least_ms: float | None = None
    most_ms: float | None = None


def run(folder: Path, library: str | None = None) -> dict[str, Any]:
    """Run everything in a prepared folder; the result as plain values."""
    driver = _module(folder / "driver.py")
    gpu = driver.Driver(library) if library else driver.Driver()
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    chosen = [a for a in plan["architectures"] if gpu.runs(a)]
    if not chosen:
        raise SystemExit(f"{gpu.name} runs none of {', '.join(plan['architectures'])}")
    architecture = chosen[-1]
    results: dict[tuple[str, str], dict[str, Any]] = {}
    outcomes = []
    for case in plan["cases"]:
        try:
            outcome, outputs = _case(folder, driver, gpu, case, architecture, results)
            results[case["name"], case["precision"]] = outputs
        except driver.DriverError as error:
            outcome = Outcome(case["name"], case["precision"], False, str(error))
            outcomes.append(outcome)
            if not error.out_of_memory:
                break  # what follows would fail with it
            continue
        outcomes.append(outcome)
    return {
        "gpu": gpu.name,
        "capability": list(gpu.capability),
        "driver": gpu.version,
        "architecture": architecture,
        "cases": len(plan["cases"]),
        "passed": len(outcomes) == len(plan["cases"]) and all(o.passed for o in outcomes),
        "outcomes": [asdict(o) for o in outcomes],
    }


def _module(path: Path) -> ModuleType:
    spec = spec_from_file_location("steptp_gpu_driver", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is missing: prepare the folder first")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _case(
    folder: Path,
    driver: ModuleType,
    gpu: "Driver",
    case: dict[str, Any],
    architecture: str,
    results: Mapping[tuple[str, str], dict[str, Any]],
) -> tuple[Outcome, dict[str, Any]]:
    memory = _memory(folder, case)
    before = memory.copy()
    loaded = _loaded(folder, driver, gpu, case, case["kernels"][architecture])
    try:
        loaded.run(memory)
    finally:
        loaded.close()
    outputs = {o["name"]: _read(memory, o) for o in case["outputs"]}
    outcome = Outcome(case["name"], case["precision"], True)
    outcome.reason = _untouched(case, before, memory) or _compared(
        folder, case, outputs, results, outcome
    )
    outcome.passed = not outcome.reason
    fast = _loaded(folder, driver, gpu, case, case["fast"][architecture])
    try:
        times = fast.times(before, REPEATS)
    finally:
        fast.close()
    outcome.median_ms, outcome.least_ms, outcome.most_ms = (
        round(f(times), 6) for f in (statistics.median, min, max)
    )
    return outcome, outputs


def _loaded(
    folder: Path, driver: ModuleType, gpu: "Driver", case: dict[str, Any], kernels: list[Any]
) -> "Loaded":
    codes = [
        driver.KernelCode(
            code=(folder / k["cubin"]).read_bytes(),
            entry=k["entry"],
            offsets=tuple(k["offsets"]),
            indices=tuple(k["indices"]),
            grid=tuple(k["grid"]),
            block=tuple(k["block"]),
        )
        for k in kernels
    ]

    def step(told: int | dict[str, Any]) -> "Step":
        if isinstance(told, int):
            return told
        inner = tuple(map(step, told["steps"]))
        repeat: Repeat = driver.Repeat(told["index"], told["start"], told["extent"], inner)
        return repeat

    loaded: Loaded = driver.Loaded(gpu, codes, [step(s) for s in case["schedule"]])
    return loaded


def _memory(folder: Path, case: dict[str, Any]) -> Array:
    """The memory before a run: guard zones, poison, sources (kept, or drawn anew if large)."""
    if case["image"]:
        kept: Array = np.load(folder / case["image"])["memory"]
        return kept
    memory = np.full(case["size"], GUARD_BYTE, np.uint8)
    for place in case["places"]:
        start = place["offset"]
        memory[start : start + place["bytes"]] = place["poison"]
    generator = np.random.Generator(np.random.PCG64(SEED))
    for source in case["sources"]:
        drawn = generator.standard_normal(source["shape"]) * source["scale"]
        # Through the working precision, so that both precisions see the same data.
        data = drawn.astype(source["drawn_as"]).astype(source["dtype"])
        memory[source["offset"] : source["offset"] + data.nbytes] = data.reshape(-1).view(np.uint8)
    return memory


def _read(memory: Array, place: dict[str, Any]) -> Array:
    raw = memory[place["offset"] : place["offset"] + place["bytes"]].copy()
    values: Array = raw.view(place["dtype"]).reshape(place["shape"])
    return values


def _untouched(case: dict[str, Any], before: Array, after: Array) -> str:
    for source in case["sources"]:
        where = slice(source["offset"], source["offset"] + source["bytes"])
        if not np.array_equal(before[where], after[where]):
            return f"input {source['name']} was changed"
    end = 0
    for place in [*case["places"], {"offset": case["size"], "bytes": 0, "name": "the end"}]:
        if np.any(after[end : place["offset"]] != GUARD_BYTE):
            return f"memory before {place['name']} was written"
        end = place["offset"] + place["bytes"]
    return ""


def _compared(
    folder: Path,
    case: dict[str, Any],
    outputs: Mapping[str, Array],
    results: Mapping[tuple[str, str], dict[str, Any]],
    outcome: Outcome,
) -> str:
    """What is wrong with the outputs; fills in how near they are."""
    precision = case["precision"]
    if case["expected"]:
        kept = np.load(folder / case["expected"])
        exact: Mapping[str, Array] = {n: kept[f"exact_{n}"] for n in outputs}
        own: Mapping[str, Array] = {n: kept[f"own_{n}"] for n in outputs}
    else:
        own = results.get((case["like"], precision), outputs)
        exact = results.get((case["like"], "float64"), outputs)
    outcome.bitwise = all(_bits(own[n]) == _bits(v) for n, v in outputs.items())
    outcome.difference, worst = 0.0, ""
    for name, value in outputs.items():
        if value.dtype.kind != "f":
            if not np.array_equal(value, own[name]):
                return f"integer output {name} differs"
            continue
        apart = _apart(exact[name], value)
        if precision == "float64":
            allowed = MATHEMATICS
        else:
            epsilon = float(np.finfo(value.dtype).eps)
            apart, before = apart / epsilon, _apart(exact[name], own[name]) / epsilon
            allowed = ERROR_FACTOR * before + ERROR_SLACK
        outcome.difference = max(outcome.difference, apart)
        if not apart <= allowed:
            worst = worst or f"{name} is {apart:.3g} off, allowed {allowed:.3g}"
    return worst


def _bits(value: Array) -> bytes:
    """The bytes, NaNs made equal."""
    if value.dtype.kind == "f":
        value = np.where(np.isnan(value), np.array(np.nan, value.dtype), value)
    return value.tobytes()


def _apart(exact: Array, value: Array) -> float:
    """The largest difference, normalised; infinite where one of the two only is no number."""
    r, q = exact.astype(np.float64), value.astype(np.float64)
    same = (r == q) | (np.isnan(r) & np.isnan(q))
    if np.any(~same & ~(np.isfinite(r) & np.isfinite(q))):
        return float("inf")
    r, q = r[~same], q[~same]
    if r.size == 0:
        return 0.0
    finite = exact.astype(np.float64)
    rms = float(np.sqrt(np.mean(np.square(finite[np.isfinite(finite)]))))
    return float(np.max(np.abs(r - q) / (np.abs(r) + rms)))


def table(result: dict[str, Any]) -> str:
    """The result for people."""
    lines = [
        f"{result['gpu']}, driver {result['driver']}, {result['architecture']}",
        f"{'program':<44}{'precision':<10}{'':<7}{'bits':<6}{'apart':>10}{'ms':>12}{'spread':>16}",
    ]
    for o in result["outcomes"]:
        time = "" if o["median_ms"] is None else f"{o['median_ms']:.4f}"
        spread = "" if o["median_ms"] is None else f"{o['least_ms']:.4f}-{o['most_ms']:.4f}"
        apart = "" if o["difference"] is None else f"{o['difference']:.2g}"
        bits = {True: "same", False: "differ", None: ""}[o["bitwise"]]
        word = "pass" if o["passed"] else "FAIL"
        lines.append(
            f"{o['name']:<44}{o['precision']:<10}{word:<7}{bits:<6}{apart:>10}{time:>12}{spread:>16}"
            + (f"  {o['reason']}" if o["reason"] else "")
        )
    passed = sum(o["passed"] for o in result["outcomes"])
    lines.append(f"{passed} of {result['cases']} passed")
    return "\n".join(lines)


# --- preparing: with the library --------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A program to check. ``like`` names the original of a large one, which llvm does not run."""

    name: str
    signed: "SignedProgram"
    large: bool = False
    like: str = ""


def large_matmul(extent: int, tile: int) -> tuple[str, str]:
    """A matrix product, plain and through shared memory; ``tile`` squared threads a block."""
    blocks = extent // tile
    header = "".join(f"# input {n} f32[{extent},{extent}]\n" for n in "AW")
    header += f"# output D f32[{extent},{extent}]\n"
    axes = f"B^{{{blocks}}}_{{bx=0}}B^{{{blocks}}}_{{by=0}}"
    threads = f"B^{{{tile}}}_{{tx=0}}B^{{{tile}}}_{{ty=0}}"
    row, column = f"bx*{tile}+tx", f"by*{tile}+ty"
    d = f"D^{{f32,g}}_{{{row},{column}}}"
    plain = (
        f"{header}{axes}{threads}L^{{{extent}}}_{{a=0}}"
        f"[{d}={d}+A^{{f32,g}}_{{{row},a}}*W^{{f32,g}}_{{a,{column}}};];\n"
    )
    tiled = (
        f"{header}{axes}[{threads}[{d}=0;];L^{{{blocks}}}_{{c=0}}["
        f"{threads}[S^{{f32,s}}_{{tx,ty}}=A^{{f32,g}}_{{{row},c*{tile}+ty}};"
        f"R^{{f32,s}}_{{tx,ty}}=W^{{f32,g}}_{{c*{tile}+tx,{column}}};];"
        f"{threads}L^{{{tile}}}_{{a=0}}[{d}={d}+S^{{f32,s}}_{{tx,a}}*R^{{f32,s}}_{{a,ty}};];];];\n"
    )
    return plain, tiled


def programs(large: int = 2048) -> list[Program]:
    """Originals of many kinds, what strategies make of them, and two large programs."""
    from steptp_dagster.leir.fileform import read
    from steptp_dagster.strategies.base import Refusal
    from steptp_dagster.strategies.registry import own_strategies
    from steptp_dagster.strategies.step import take
    from steptp_dagster.verify.zoo import originals

    found = []
    for name in ("MATMUL_HALF", "SOFTMAX", "LAYERNORM", "ATTENTION", "QUANTISE", "REVERSE", "GELU"):
        signed = read(getattr(originals, name)).signed
        found.append(Program(name.lower(), signed))
        taken = 0
        # From the last name on: what binds, caches and reduces over threads comes first.
        for chosen in reversed(list(own_strategies().values())):
            sites = chosen.survey(signed).sites
            step = take(chosen, signed, sites[-1]) if sites else None
            if step is not None and not isinstance(step, Refusal) and taken < STEPS:
                found.append(Program(f"{name.lower()}/{chosen.name}"[:43], step.after))
                taken += 1
    plain, tiled = (read(text).signed for text in large_matmul(large, 16))
    found.append(Program("large_matmul", plain, large=True, like="large_matmul"))
    found.append(Program("large_matmul/tiled", tiled, large=True, like="large_matmul"))
    return found


def prepare(
    folder: Path,
    wanted: Sequence[Program],
    compiler: Compiler | None = None,
    architectures: Sequence[str] = ARCHITECTURES,
) -> None:
    """Pack a folder for ``run``. Raises what lowering and compiling raise."""
    from steptp_dagster.lowering.cuda import driver
    from steptp_dagster.lowering.cuda.cubins import compile_kernels
    from steptp_dagster.lowering.cuda.lower import lower
    from steptp_dagster.lowering.precision import in_precision

    build = compiler or compile_kernels
    (folder / "data").mkdir(parents=True, exist_ok=True)
    kinds: tuple[Precision, ...] = ("float64", "working")
    both = [(p, kind) for p in wanted for kind in kinds]
    lowered = []
    for program, kind in both:
        try:
            lowered.append((program, kind, lower(in_precision(program.signed, kind))))
        except Exception as error:  # noqa: BLE001 - what one program cannot is no reason to stop
            print(f"left out: {program.name} in {kind}: {error}", file=sys.stderr)
    texts = [text for _, _, text in lowered]
    modules: dict[bytes, str] = {}
    kernels: dict[tuple[str, bool], list[Any]] = {
        (a, contract): _packed(folder, texts, build(texts, a, contract=contract), modules)
        for a in architectures
        for contract in (False, True)
    }
    cases = []
    for number, (program, kind, text) in enumerate(lowered):
        case: dict[str, Any] = {"name": program.name, "precision": kind, "like": program.like}
        case |= _described(folder, program, kind, text, number)
        for key, contract in (("kernels", False), ("fast", True)):
            case[key] = {a: kernels[a, contract][number] for a in architectures}
        cases.append(case)
    plan = {"architectures": list(architectures), "cases": cases}
    (folder / "plan.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
    shutil.copy(str(driver.__file__), folder / "driver.py")
    shutil.copy(__file__, folder / "gpu_check.py")


def _packed(
    folder: Path, texts: Sequence["CudaProgram"], compiled: Sequence[Any], modules: dict[bytes, str]
) -> list[list[dict[str, Any]]]:
    """The kernels of every program as plain values, their cubins written once each."""
    from steptp_dagster.lowering.cuda.device import kernel_codes

    found = []
    for text, own in zip(texts, compiled, strict=True):
        if isinstance(own, Exception):
            raise own
        kernels: tuple[CompiledKernel, ...] = own
        for kernel in kernels:
            if kernel.code not in modules:
                modules[kernel.code] = f"data/module{len(modules)}.cubin"
                (folder / modules[kernel.code]).write_bytes(kernel.code)
        codes = kernel_codes(text, kernels)
        found.append([{**asdict(c), "code": None, "cubin": modules[c.code]} for c in codes])
    return found


def _described(
    folder: Path, program: Program, kind: "Precision", text: "CudaProgram", number: int
) -> dict[str, Any]:
    """Memory, data and expected results of one case."""
    from steptp_dagster.lowering import compile_programs
    from steptp_dagster.lowering.arena import Arena
    from steptp_dagster.lowering.cuda.device import launches
    from steptp_dagster.lowering.kernel import sources
    from steptp_dagster.lowering.precision import in_precision
    from steptp_dagster.lowering.storage import NUMPY
    from steptp_dagster.verify.families import FAMILIES, inputs

    signature = in_precision(program.signed, kind).signature
    drawn = program.signed.signature.by_name
    arena = Arena(text.layout)
    places = [
        {
            "name": p.name,
            "offset": p.offset,
            "bytes": p.size,
            "dtype": np.dtype(NUMPY[p.dtype]).str,
            "shape": list(p.shape),
            "poison": int(arena.memory[p.offset]) if p.size else 0,
        }
        for p in text.layout.places
    ]
    by_name = {p["name"]: p for p in places}
    given = [
        {
            **by_name[v.name],
            "drawn_as": np.dtype(NUMPY[drawn[v.name].dtype]).str,
            "scale": (v.shape[-1] if v.shape else 1) ** -0.25,
        }
        for v in signature.sources
    ]
    told: dict[str, Any] = {
        "size": text.layout.size,
        "places": places,
        "sources": given,
        "outputs": [by_name[v.name] for v in signature.outputs],
        "schedule": [_plain(s) for s in launches(text)],
        "image": "",
        "expected": "",
    }
    if program.large:
        return told
    data = inputs(program.signed.signature, FAMILIES[0], SEED)
    for name, value in sources(signature, data).items():
        arena.write(name, value)
    exact, own = (
        compile_programs([program.signed], precision)[0].run(data)
        for precision in ("float64", kind)
    )
    told["image"], told["expected"] = f"data/image{number}.npz", f"data/expected{number}.npz"
    np.savez_compressed(folder / told["image"], memory=arena.memory)
    arrays = {f"exact_{n}": v for n, v in exact.items()} | {f"own_{n}": v for n, v in own.items()}
    np.savez_compressed(folder / told["expected"], allow_pickle=False, **arrays)
    return told


def _plain(step: "Step") -> int | dict[str, Any]:
    if isinstance(step, int):
        return step
    return {
        "index": step.index,
        "start": step.start,
        "extent": step.extent,
        "steps": [_plain(s) for s in step.steps],
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prepare", metavar="DIR", type=Path)
    what.add_argument("--run", metavar="DIR", type=Path)
    parser.add_argument("--library", help="another file than libcuda.so.1")
    chosen = parser.parse_args()
    if chosen.prepare:
        wanted = programs()
        prepare(chosen.prepare, wanted)
        print(f"{len(wanted)} programs in {chosen.prepare}; now run its gpu_check.py with --run")
        return
    result = run(chosen.run, chosen.library)
    (chosen.run / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(table(result))
    sys.exit(not result["passed"])


if __name__ == "__main__":
    main()
