"""Plug-ins: found, checked, and each fault one line with its place."""

import importlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.stages.steps import BrokenPlugin, units
from steptp_dagster.dataset.versions import strategy_version
from steptp_dagster.strategies import plugins
from steptp_dagster.strategies.registry import faults, own_strategies, strategies, strategy

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "strategies"
EXAMPLE = (EXAMPLES / "loop_reversal.py").read_text(encoding="utf-8")
#: The line of its class.
CLASS = EXAMPLE[: EXAMPLE.index("class ")].count("\n") + 1

Plugged = Callable[..., Path]


@pytest.fixture
def plugged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugged:
    """Writes files into a folder of plug-ins that the registry reads."""

    def write(**files: str) -> Path:
        for stem, text in files.items():
            (tmp_path / f"{stem}.py").write_text(text, encoding="utf-8")
        monkeypatch.setenv(plugins.VARIABLE, str(tmp_path))
        return tmp_path

    return write


def test_without_plugins_only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    assert strategies().keys() == own_strategies().keys()
    assert faults() == ()


def test_the_worked_example_is_a_strategy_of_its_own_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(plugins.VARIABLE, str(EXAMPLES))
    assert faults() == ()
    assert strategy("loop_reversal").origin == "loop_reversal"
    assert strategies().keys() == own_strategies().keys() | {"loop_reversal"}
    assert list(strategies()) == sorted(strategies())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("def (", 1, "SyntaxError"),
        ("x = 1\nimport no_such_module", 2, "ModuleNotFoundError"),
        ("\n\nraise SystemExit(3)", 3, "SystemExit"),
        ("x = 1", None, "no class that derives from Strategy"),
        (EXAMPLE.replace('name = "loop_reversal"', 'name = "loop_split"'), CLASS, "is taken"),
        (EXAMPLE.replace('name = "loop_reversal"', 'name = "Loop Reversal"'), CLASS, "snake_case"),
        (EXAMPLE.replace('level = "operator"', 'level = "loop"'), CLASS, "level must be one of"),
        (EXAMPLE.replace('version = "1"', "version = 1"), CLASS, "version must be a text"),
        (EXAMPLE.replace('"runs-once", "dep', '"Runs once", "dep'), CLASS, "kebab-case"),
        (
            EXAMPLE.replace('    version = "1"', '    origin = "published"'),
            CLASS,
            "version must be",
        ),
        (
            EXAMPLE.replace('    version = "1"', '    version = "1"\n    origin = "steptp"'),
            CLASS,
            "origin 'steptp' is the library's own",
        ),
        (EXAMPLE.replace("def survey", "def surveys"), CLASS, "lacks survey"),
    ],
)
def test_a_broken_one_is_one_fault_and_hides_nothing(
    plugged: Plugged, text: str, line: int | None, message: str
) -> None:
    folder = plugged(bad=text, good=EXAMPLE.replace("loop_reversal", "good_one"))
    (fault,) = faults()
    assert fault.plugin == "bad"
    assert message in fault.message
    assert fault.location == f"{folder / 'bad.py'}" + (f":{line}" if line else "")
    assert strategies().keys() == own_strategies().keys() | {"good_one"}
    with pytest.raises(KeyError, match=r"plug-in bad .*bad\.py"):
        strategy("bad")


def test_of_two_with_one_name_the_later_is_a_fault(plugged: Plugged) -> None:
    plugged(a=EXAMPLE, b=EXAMPLE, _helper="not loaded (")
    assert [f.plugin for f in faults()] == ["b"]


def test_a_folder_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "missing"))
    (fault,) = faults()
    assert "names no folder" in fault.message


def test_rules_come_along_but_replace_none(plugged: Plugged) -> None:
    rule = (
        "from steptp_dagster.strategies.soundness import Rule\n{}\n"
        "LoopReversal.own_rules = (Rule({!r}, 'exact', 'because it is so'),)\n"
    )
    plugged(
        a=rule.format(EXAMPLE.replace("loop_reversal", "aaa"), "order-does-not-matter"),
        b=rule.format(EXAMPLE.replace("loop_reversal", "bbb"), "substitution"),
    )
    (fault,) = faults()
    assert fault.message == "there is another soundness rule 'substitution'"
    assert "aaa" in strategies()


def test_packages_name_theirs_as_entry_points(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "lib"
    shutil.copytree(EXAMPLES, package / "some_strategies")
    (package / "some_strategies" / "__init__.py").touch()
    information = package / "some_strategies-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: some-strategies\n")
    (information / "entry_points.txt").write_text(
        "[steptp.strategies]\nreversal = some_strategies.loop_reversal:LoopReversal\n"
        "gone = some_strategies.missing\n"
    )
    monkeypatch.syspath_prepend(str(package))
    importlib.invalidate_caches()
    monkeypatch.setenv(plugins.VARIABLE, "")
    plugins._load.cache_clear()
    try:
        assert strategy("loop_reversal").origin == "some-strategies"
        (fault,) = faults()
        assert fault.plugin == "some-strategies"
        assert "some_strategies.missing" in fault.location
    finally:
        plugins._load.cache_clear()


def test_a_build_with_a_broken_one_stops_in_words(plugged: Plugged) -> None:
    plugged(bad="def (")
    with pytest.raises(BrokenPlugin, match=r"plug-in bad .*bad\.py:1"):
        units([], load_profile("tiny"), 1)


def test_a_changed_plugin_has_another_version(plugged: Plugged) -> None:
    text = EXAMPLE.replace("loop_reversal", "changing")
    folder = plugged(changing=text)
    first = strategy_version("changing")
    others = strategy_version("loop_split")
    (folder / "changing.py").write_text(text + "# more\n", encoding="utf-8")
    strategy_version.cache_clear()
    assert strategy_version("changing") != first
    assert strategy_version("loop_split") == others
