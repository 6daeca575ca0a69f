"""The UI as people use it: look, click, wait, read. ``make test-ui`` runs it."""

import re
from typing import Any

import pytest

from tests.support.browser import Server, shot

pytestmark = pytest.mark.ui

NODES = "{assetNodes{assetKey{path} dependencyKeys{path} groupName kinds}}"
LOCATIONS = """{workspaceOrError{... on Workspace{
    locationEntries{name loadStatus locationOrLoadError{__typename}}}}}"""
RUNS = "{runsOrError(limit: 20){... on Runs{results{runId status}}}}"
BACKFILLS = """{partitionBackfillsOrError(limit: 5){... on PartitionBackfills{
    results{id status numPartitions}}}}"""


def runs(told: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told["runsOrError"]["results"]
    return found


def button(page: Any, text: str) -> Any:
    """Buttons whose text starts so; the icons in them have names of their own."""
    return page.locator("button").filter(has_text=re.compile(f"^\\s*{text}"))


def test_the_graph_loads_without_errors(server: Server, page: Any) -> None:
    (location,) = server.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
    assert location["locationOrLoadError"]["__typename"] == "RepositoryLocation"
    nodes = {n["assetKey"]["path"][0]: n for n in server.ask(NODES)["assetNodes"]}
    assert {n["groupName"] for n in nodes.values()} == {"programs", "steps", "dataset"}
    groups = ("programs", "steps", "dataset")
    page.set_viewport_size({"width": 2500, "height": 600})
    page.goto("/asset-groups?expanded=" + ",".join(f"global@global:{name}" for name in groups))
    for name in nodes:
        page.get_by_text(name, exact=True).first.wait_for()
    shot(page, "graph")


def test_an_asset_is_materialised_by_a_click(server: Server, page: Any) -> None:
    before = {run["runId"] for run in runs(server.ask(RUNS))}
    page.goto("/assets/export")
    button(page, "Materialize").first.click()

    def done(told: dict[str, Any]) -> bool:
        new = [r for r in runs(told) if r["runId"] not in before]
        assert all(r["status"] != "FAILURE" for r in new)
        return any(r["status"] == "SUCCESS" for r in new)

    server.wait("the run that was clicked", RUNS, done)
    page.goto("/assets/gpu_verification")
    page.get_by_text("One row per step and target", exact=False).first.wait_for()
    shot(page, "asset")


def test_a_check_shows_its_result(page: Any) -> None:
    page.goto("/assets/warehouse?view=checks")
    page.get_by_text("no_wrong_pair").first.wait_for()
    page.get_by_text("no_wrong_pair").first.click()
    page.get_by_text("Succeeded", exact=False).first.wait_for()
    shot(page, "check")


def test_a_backfill_of_partitions_runs(server: Server, page: Any) -> None:
    page.goto("/assets/source_programs?view=partitions")
    page.get_by_text("softmax").first.wait_for()
    button(page, "Materialize").first.click()
    button(page, "All").last.click()
    button(page, "Launch").last.click()

    def done(told: dict[str, Any]) -> bool:
        found = told["partitionBackfillsOrError"]["results"]
        return bool(found) and found[0]["status"] == "COMPLETED_SUCCESS"

    server.wait("the backfill", BACKFILLS, done)
    page.goto("/assets/source_programs?view=partitions")
    page.get_by_text("softmax").first.wait_for()
    shot(page, "partitions")


def test_a_sample_record_is_readable(page: Any) -> None:
    page.goto("/assets/filtered_dataset?view=overview")
    row = page.get_by_role("row").filter(has_text="a record (single)")
    row.get_by_text("Show Markdown", exact=False).first.click()
    dialog = page.get_by_role("dialog")
    for words in ("Program", "Step", "Reasoning", "Verdict"):
        dialog.get_by_text(words).first.wait_for()
    dialog.get_by_text("Program").first.scroll_into_view_if_needed()
    shot(page, "record")
