"""What the README shows is what the project does."""

import re
from pathlib import Path

from steptp_dagster.cli.main import COMMANDS
from steptp_dagster.leir.fileform import read
from steptp_dagster.reasoning.render import render_text
from steptp_dagster.strategies.registry import strategy
from steptp_dagster.strategies.step import Step, take

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```leir\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_record_is_real() -> None:
    before = read(block("before")).signed
    after = read(block("after"), inherit=before.signature).signed
    chosen = strategy("online_softmax")
    sites = [s for s in chosen.survey(before).sites if s.text("form") == "history"]
    step = take(chosen, before, sites[0])
    assert isinstance(step, Step)
    assert step.after == after
    told = " ".join(render_text(chosen, step.site, step.explanation).split())
    quotes = re.findall(r"(?:^> .*\n)+", README, re.MULTILINE)
    assert quotes
    for quote in quotes:
        words = " ".join(re.sub(r"^> ", "", quote, flags=re.MULTILINE).split())
        assert all(part.strip() in told for part in words.split("[…]")), words


def test_commands_and_links_exist() -> None:
    named = set(re.findall(r"^(?:\.venv/bin/)?steptp (\w+)", README, re.MULTILINE))
    assert named and named <= set(COMMANDS)
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (ROOT / target).exists(), target
    targets = set(re.findall(r"^make ([a-z]+)", README, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets and all(re.search(rf"^{t}:", makefile, re.MULTILINE) for t in targets)
