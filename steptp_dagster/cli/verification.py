"""``steptp verify`` and ``steptp zoo``: the verifier on two files, and on pairs it must know."""

from typing import Any

import click

from steptp_dagster.cli.files import as_data, read_candidate, read_valid, report
from steptp_dagster.cli.output import REJECTED, Failure, emit, json_option, say
from steptp_dagster.leir.limits import check_limits


@click.command()
@click.argument("original")
@click.argument("candidate")
@click.option("--seed", default=0, show_default=True, help="Seed of the inputs.")
@click.option("--target", default="llvm", show_default=True, help="Where both programs run.")
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

    Exit code: 0 accepted, 1 rejected (wrong values, not valid LEIR, or over the target limits),
    2 a file cannot be read or parsed, the original is not valid, or wrong usage.
    """
    from steptp_dagster.verify.pool import Verifier
    from steptp_dagster.verify.record import TARGETS

    if target not in TARGETS:
        raise Failure(f"there is no target {target!r}; one of {', '.join(TARGETS)}")
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
@click.option("--seed", default=0, show_default=True, help="Seed of the inputs.")
@json_option
@click.pass_context
def zoo(context: click.Context, seed: int, as_json: bool) -> None:
    """Run the verifier on pairs that are known to be wrong, and on some that are right.

    Exit code: 0 every wrong pair rejected and every right one accepted, else 1.
    """
    from steptp_dagster.verify.zoo import run

    if seed < 0:
        raise Failure(f"a seed is not negative: {seed}")
    result = run(seed)
    data = {"passed": result.passed, **result.summary(), "pairs": result.rows()}
    emit(data, result.to_text, as_json=as_json)
    if not result.passed:
        context.exit(REJECTED)


def _words(verdict: dict[str, Any], static: str) -> str:
    """The verdict for people: the answer first, then what speaks for it."""
    if not verdict["accepted"]:
        answer = f"rejected: {verdict['reason']}: {verdict['message']}".rstrip(": ")
    else:
        bits = "bit for bit" if verdict["bitwise"] else "not bit for bit"
        answer = f"accepted: {verdict['equality']} ({bits} on llvm)"
    lines = [answer]
    if static:
        lines.append(static)
    if verdict["families"]:
        lines.append("family                    difference  error before  error after  failure")
    for family in verdict["families"]:
        numbers = (family[k] for k in ("difference", "original_error", "candidate_error"))
        cells = "".join(f"{_number(n):>13}" for n in numbers)
        lines.append(f"{family['family']:<23}{cells}  {family['failure'] or ''}".rstrip())
    return "\n".join(lines)


def _number(value: float | str | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:.2g}"
