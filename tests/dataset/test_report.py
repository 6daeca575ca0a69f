"""The HTML report: one file, no network, every plot with the rows that it is drawn from."""

import re
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from plotly.offline import get_plotlyjs

from steptp_dagster.cli.main import steptp
from steptp_dagster.dataset.config import load as load_profile
from steptp_dagster.dataset.report import PARTS, report_html
from steptp_dagster.dataset.schemas import STABLE
from steptp_dagster.dataset.warehouse import connect, load
from tests.support.prepared import prepare
from tests.support.rows import all_rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    stages = prepare(folder / "stages", all_rows(wrong=2))
    load(stages, load_profile("tiny"), folder / "steptp.duckdb")
    return folder


class Outline(HTMLParser):
    """Headings, what is loaded from elsewhere, and tables of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href") and value]


def test_the_page_is_self_contained_and_says_what_the_tables_say(data: Path) -> None:
    with connect(data / "steptp.duckdb") as connection:
        whole = report_html(connection)
        rows = [connection.sql(part.query).fetchall() for part in PARTS]
    # Without the library, which is put into the page as it is.
    page = whole.replace(get_plotlyjs(), "")
    assert len(page) < 200_000 < len(whole)
    outline = Outline()
    outline.feed(page)
    assert outline.loaded == []
    assert "link" not in outline.tags
    drawn = sum(bool(found) for found in rows)
    assert drawn >= 8
    assert page.count('class="plotly-graph-div"') == drawn
    assert outline.tags.count("table") == drawn + 1
    for part, found in zip(PARTS, rows, strict=True):
        section = page.split(f"<h2>{part.title}</h2>")[1].split("<h2>")[0]
        assert ("None." in section) == (not found)
        cells = re.findall(r"<td>(.*?)</td>", section)
        assert cells == ["" if value is None else str(value) for row in found for value in row]


def test_an_empty_data_set_has_a_report(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "w.duckdb"
    copy.write_bytes((data / "steptp.duckdb").read_bytes())
    with duckdb.connect(str(copy)) as connection:
        for name in STABLE:
            connection.execute(f"delete from {name}")
        assert report_html(connection).count("<p>None.</p>") == len(PARTS)


@pytest.mark.slow
def test_report_is_written_beside_the_data(data: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(steptp, ["report", "--data", str(data)])
    assert result.exit_code == 0, result.output
    assert (data / "report.html").stat().st_size > 1_000_000
    other = tmp_path / "page.html"
    assert (
        CliRunner().invoke(steptp, ["report", "--data", str(data), "--to", str(other)]).exit_code
        == 0
    )
    assert other.read_bytes() == (data / "report.html").read_bytes()
    nowhere = CliRunner().invoke(
        steptp, ["report", "--data", str(data), "--to", str(tmp_path / "no" / "page.html")]
    )
    assert nowhere.exit_code == 1
    assert "No such file or directory" in nowhere.stderr
    assert CliRunner().invoke(steptp, ["report", "--data", str(tmp_path)]).exit_code == 2


def test_duckdb_alone_opens_the_warehouse(data: Path) -> None:
    with duckdb.connect(str(data / "steptp.duckdb"), read_only=True) as connection:
        (count,) = connection.execute("select count(*) from filtered_dataset").fetchall()[0]
    assert count > 0
