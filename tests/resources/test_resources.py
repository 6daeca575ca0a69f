from pathlib import Path

import dagster as dg
import pytest

from resources.build import Build
from resources.store import ParquetStore
from resources.tokenizer import Tokenizer
from resources.warehouse import Warehouse
from steptp_dagster.dataset import tokens
from steptp_dagster.dataset.config import load
from steptp_dagster.dataset.parallel import cores
from steptp_dagster.dataset.warehouse import NoWarehouse
from tests.support.prepared import prepare
from tests.support.rows import all_rows


def test_all_lie_in_the_data_folder(tmp_path: Path) -> None:
    store, warehouse = ParquetStore(data=str(tmp_path)), Warehouse(data=str(tmp_path))
    assert store.files.root == tmp_path / "stages"
    assert warehouse.path == tmp_path / "steptp.duckdb"
    with pytest.raises(NoWarehouse), warehouse.read():
        pass
    prepare(store.files.root, all_rows())
    assert warehouse.load(store.files, load("tiny")).built
    with warehouse.read() as connection:
        assert connection.execute("select count(*) from zoo").fetchone() == (2,)


def test_the_tokenizer_is_named_and_counts() -> None:
    tokenizer = Tokenizer()
    assert tokenizer.name == "qwen"
    assert tokenizer.count("1024") == 4


def test_a_missing_vocabulary_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(tokens.NoVocabulary, match="comes with the package dashscope"):
        tokens.vocabulary()


def test_a_build_uses_every_core_unless_told() -> None:
    assert Build().count == cores()
    assert Build(processes=3).count == 3
    assert Build(profile_name="tiny").profile.name == "tiny"


def test_work_over_processes_comes_back_in_order() -> None:
    with Build(processes=2).workers() as two, Build(processes=1).workers() as one:
        items = list(range(20))
        assert list(two.map(abs, items)) == list(one.map(abs, items)) == items


def test_progress_goes_to_the_log_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    @dg.asset
    def counted(context: dg.AssetExecutionContext) -> None:
        show = Build().progress(context)
        assert list(show("steps", 2, [1, 2])) == [1, 2]

    assert dg.materialize([counted]).success
    assert "counted - steps: 2/2" in capsys.readouterr().err
