"""``steptp verify``, ``shrink`` and ``zoo``: two files, or pairs that the verifier must know."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steptp_dagster.cli.files import as_data, read_candidate, read_valid, report
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, say, table
from steptp_dagster.leir.limits import check_limits

if TYPE_CHECKING:
    from steptp_dagster.leir.signature import SignedProgram
    from steptp_dagster.verify.record import Verdict


@click.command()
@click.argument("original")
@click.argument("candidate")
@click.option("--seed", default=0, show_default=True, help="Seed of the inputs.")
@click.option(
    "--target",
    default="llvm",
    show_default=True,
    help="Where both programs run: llvm, cuda:sm_80 or cuda:sm_90.",
)
@click.option("--timeout", default=120.0, show_default=True, help="Seconds before giving up.")
@json_option
@click.pass_context
def verify(
    context: click.Context,
    original: str,
    candidate: str,
    seed: int,
    target: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Judge whether CANDIDATE computes what ORIGINAL computes.

    A candidate without header lines has the original's signature. The work is done in a process
    of its own with a time and a memory limit.

    On a CUDA target both programs are built, and run if such a GPU is here; if none is, the
    answer is "built", which is no acceptance.

    Exit code: 0 accepted, 1 rejected (wrong values, not valid LEIR, or over the target limits) or
    only built, 2 a file cannot be read or parsed, the original is not valid, or wrong usage.
    """
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import TARGETS
    from steptp_dagster.verify.versions import nvrtc_available

    if target not in TARGETS:
        raise Failure(f"there is no target {target!r}; one of {', '.join(TARGETS)}")
    if target.startswith("cuda:") and not nvrtc_available():
        raise Failure(f"{target} needs NVRTC: pip install 'steptp-dagster[cuda]'")
    if seed < 0:
        raise Failure(f"a seed is not negative: {seed}")
    if not timeout > 0:
        raise Failure(f"a timeout is a positive number of seconds: {timeout:g}")
    if original == candidate == "-":
        raise Failure("only one of the two files can be standard input")
    first = read_valid(original).signed
    second, text = read_candidate(candidate, first.signature)
    for note in second.notes:
        say(f"{candidate}: note: {note}")
    over = check_limits(first)
    for violation in over:
        say(f"{original}: note: over a target limit: {violation.message}")
    with Verifier(1, timeout_s=timeout, seed=seed, target=target) as verifier:
        ((_, verdict),) = verifier.verify_many([(0, first, second.signed)])
    data: dict[str, Any] = verdict.to_json()
    data |= {"seed": seed, "static": as_data(verdict.static, text)}
    data["original_limits"] = [violation.message for violation in over]
    emit(data, lambda: _words(data, report(verdict.static, text)), as_json=as_json)
    if not verdict.accepted:
        context.exit(REJECTED)


@click.command()
@click.argument("original")
@click.argument("candidate")
@click.option("--out", help="Folder to write original.leir and candidate.leir to.")
@click.option("--budget", default=400, show_default=True, help="Most pairs that are judged.")
@click.option("--seed", default=0, show_default=True, help="Seed of the inputs.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for one pair.")
@json_option
def shrink(
    original: str,
    candidate: str,
    out: str | None,
    budget: int,
    seed: int,
    timeout: float,
    as_json: bool,
) -> None:
    """Make a failing pair as small as it goes, with the same reason of failure.

    Both programs lose what the failure does not need: nests, loops, extents, terms. The original
    stays valid, and the candidate rejected for the reason that it is rejected for now.

    Exit code: 0 shrunk, 1 the candidate is accepted, 2 as for verify.
    """
    from steptp_dagster.leir.fileform import write
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.shrink import NothingToShrink
    from steptp_dagster.verify.shrink import shrink as smallest

    if budget < 1:
        raise Failure(f"at least one pair is judged: {budget}")
    if seed < 0:
        raise Failure(f"a seed is not negative: {seed}")
    if not timeout > 0:
        raise Failure(f"a timeout is a positive number of seconds: {timeout:g}")
    first = read_valid(original).signed
    second, _ = read_candidate(candidate, first.signature)
    with Verifier(1, timeout_s=timeout, seed=seed) as verifier:

        def judge(one: "SignedProgram", other: "SignedProgram") -> "Verdict":
            ((_, verdict),) = verifier.verify_many([(0, one, other)])
            return verdict

        try:
            found = smallest(first, second.signed, judge, budget=budget)
        except NothingToShrink as accepted:
            raise Failure(str(accepted), REJECTED) from accepted
    texts = {"original": write(found.original), "candidate": write(found.candidate)}
    if out is not None:
        _written(Path(out), texts)
    verdict = found.verdict
    told = f"rejected: {verdict.reason}: {verdict.message}".rstrip(": ")
    if not found.finished:
        say(f"stopped after {found.judged} pairs; --budget allows more")
    data: dict[str, Any] = {**texts, "judged": found.judged, "finished": found.finished}
    data |= {"reason": verdict.reason, "verdict": verdict.to_json()}
    emit(data, lambda: f"{texts['original']}\n{texts['candidate']}\n{told}", as_json=as_json)


def _written(folder: Path, texts: dict[str, str]) -> None:
    """Write ``NAME.leir`` for every text. Fails in words."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.leir").write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{folder}: {error.strerror or error}") from error


@click.command()
@click.option("--seed", default=0, show_default=True, help="Seed of inputs and of the choice.")
@click.option("--sample", type=int, help="Only so many mutants, of programs written by hand.")
@click.option("--workers", type=int, default=1, show_default=True, help="Processes.")
@json_option
@click.pass_context
def zoo(context: click.Context, seed: int, sample: int | None, workers: int, as_json: bool) -> None:
    """Try the verifier on pairs known to be wrong or right, and on mutants of right programs.

    Without --sample: all pairs written by hand, more than a thousand programs with one mistake each
    (of programs by hand, of the library and of results of steps), and what strategies of all levels
    make of them. Whether a mutant truly differs is found out apart from the verdict.

    Exit code: 0 every wrong pair and every mutant that truly differs rejected, every right pair and
    95 % of the right steps accepted, else 1.
    """
    from steptp_dagster.dataset import zoo_score
    from steptp_dagster.dataset.parallel import workers as open_workers
    from steptp_dagster.progress import on_stream
    from steptp_dagster.verify.zoo import run

    if seed < 0:
        raise Failure(f"a seed is not negative: {seed}")
    if sample is not None and sample < 0:
        raise Failure(f"a sample is not negative: {sample}")
    if workers < 1:
        raise Failure(f"at least one process: {workers}")
    result = run(seed)
    if sample is not None:
        outcome = zoo_score.sample(seed, sample, on_stream())
    else:
        with open_workers(workers) as pool:
            outcome = zoo_score.whole(seed, pool, on_stream())
    passed = result.passed and outcome.passed
    mutation = outcome.to_json()
    data = {"passed": passed, **result.summary(), "pairs": result.rows(), "mutation": mutation}
    emit(data, lambda: f"{result.to_text()}\n\n{_scored(mutation)}", as_json=as_json)
    if not passed:
        context.exit(REJECTED)


def _scored(mutation: dict[str, Any]) -> str:
    """The table of mutants for people, with what went wrong below."""
    lines = [table(mutation["kinds"])]
    lines += [
        f"MISSED: {m['kind']} in {m['base']}, {m['place']}: {m['seen']}" for m in mutation["missed"]
    ]
    lines.append(
        f"{mutation['rejected']} of {mutation['different']} truly different mutants rejected "
        f"({mutation['mutation_score']:.1%}); of the {mutation['executable']} that are valid "
        f"programs the published rule accepts {mutation['published_rule_accepts']}"
    )
    if mutation["right"]:
        lines += [
            f"right, but rejected: {r['name']}: {r['reason']}" for r in mutation["right_rejected"]
        ]
        lines.append(f"{mutation['right_accepted']} of {mutation['right']} right steps accepted")
    return "\n".join(lines)


def _words(verdict: dict[str, Any], static: str) -> str:
    """The verdict for people: the answer first, then what speaks for it."""
    target = verdict["target"]
    if verdict["equality"] == "built":
        answer = f"built for {target}, not executed: {verdict['message']}"
    elif not verdict["accepted"]:
        answer = f"rejected: {verdict['reason']}: {verdict['message']}".rstrip(": ")
    else:
        bits = "bit for bit" if verdict["bitwise"] else "not bit for bit"
        answer = f"accepted: {verdict['equality']} ({bits} on {target})"
    lines = [answer]
    if static:
        lines.append(static)
    if verdict["families"]:
        lines.append("family                    difference  error before  error after  failure")
    for family in verdict["families"]:
        numbers = (family[k] for k in ("difference", "original_error", "candidate_error"))
        cells = "".join(f"{_number(n):>13}" for n in numbers)
        lines.append(f"{family['family']:<23}{cells}  {family['failure'] or ''}".rstrip())
    for whose, key in (("original", "original_kernels"), ("candidate", "kernels")):
        if verdict[key]:
            lines += [f"kernels of the {whose}", table([_launch(k) for k in verdict[key]])]
    return "\n".join(lines)


def _launch(kernel: dict[str, Any]) -> dict[str, Any]:
    """A kernel's figures in the words of the terminal."""
    size = {axes: " x ".join(map(str, kernel[axes])) for axes in ("grid", "block")}
    spills = kernel["spill_stores"] + kernel["spill_loads"]
    return {
        "nest": kernel["nest"],
        **size,
        "registers": kernel["registers"],
        "stack": kernel["stack_bytes"],
        "spills": spills,
        "shared": kernel["shared_bytes"],
        "barriers": kernel["barriers"],
        "occupancy": f"{kernel['occupancy']:.0%}",
    }


def _number(value: float | str | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:.2g}"
