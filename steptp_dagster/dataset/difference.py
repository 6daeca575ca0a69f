"""What came, went and changed between two builds, and why.

Rows are matched by their ids, which are digests of content: another id is another thing. A row
that only one build has is explained by the other build: it lacks the source, the strategy, the
step ... A row that both have is changed where a column differs (``unit``, the key of the work, is
no content). Why the builds differ at all is told by settings, code versions and releases.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb

#: Table -> the columns that identify a row.
KEYS: Final[dict[str, tuple[str, ...]]] = {
    "source_programs": ("source_id",),
    "translations": ("source_id",),
    "leir_programs": ("leir_id",),
    "surveys": ("survey_id",),
    "transformed_steps": ("step_id",),
    "gpu_verification": ("step_id", "target"),
    "trajectories": ("trajectory_id",),
    "negatives": ("negative_id",),
    "filtered_dataset": ("record_id",),
    "exclusions": ("step_id",),
    "token_counts": ("leir_id",),
    "zoo": ("pair",),
}
#: Table -> SQL that says why the other build (``other``) lacks a row ``r`` of one (``own``).
REASONS: Final[dict[str, str]] = {
    "source_programs": """case
        when r.program not in (select o.program from other.source_programs o) then 'program'
        when r.code_hash not in (select o.code_hash from other.source_programs o
            where o.program = r.program) then 'code of the program'
        when r.dtype not in (select o.dtype from other.source_programs o
            where o.program = r.program) then 'dtype'
        when r.form not in (select o.form from other.source_programs o
            where o.program = r.program) then 'form'
        else 'sample of shapes' end""",
    "translations": """case
        when r.source_id not in (select o.source_id from other.source_programs o) then 'source'
        else 'translation' end""",
    "leir_programs": """case
        when r.leir_id in (select o.leir_id from own.translations o where o.leir_id is not null)
            then 'source'
        else 'step' end""",
    "surveys": """case
        when r.source_id not in (select o.source_id from other.source_programs o) then 'source'
        when r.parent_leir_id not in (select o.leir_id from other.leir_programs o) then 'program'
        when r.strategy not in (select o.strategy from other.surveys o) then 'strategy'
        else 'other' end""",
    "transformed_steps": """case
        when r.source_id not in (select o.source_id from other.source_programs o) then 'source'
        when r.strategy not in (select o.strategy from other.surveys o) then 'strategy'
        when r.strategy_version not in (select o.strategy_version from other.transformed_steps o
            where o.strategy = r.strategy) then 'version of the strategy'
        when r.parent_leir_id not in (select o.leir_id from other.leir_programs o)
            then 'step before'
        when (r.parent_leir_id, r.strategy, (select any_value(s.sites) from own.surveys s
                where s.parent_leir_id = r.parent_leir_id and s.strategy = r.strategy))
            not in (select (o.parent_leir_id, o.strategy, o.sites) from other.surveys o)
            then 'sites of the strategy'
        else 'choice of sites' end""",
    "gpu_verification": """case
        when r.step_id not in (select o.step_id from other.transformed_steps o) then 'step'
        else 'target' end""",
    "trajectories": """case
        when r.source_id not in (select o.source_id from other.source_programs o) then 'source'
        when exists (select 1 from unnest(r.step_ids) u(step_id)
            where u.step_id not in (select o.step_id from other.transformed_steps o)) then 'step'
        else 'choice of chains' end""",
    "negatives": """case
        when r.step_id not in (select o.step_id from other.transformed_steps o) then 'step'
        else 'choice of mistakes' end""",
    "filtered_dataset": """case
        when r.source_id not in (select o.source_id from other.source_programs o) then 'source'
        when exists (select 1 from unnest(r.step_ids) u(step_id)
            where u.step_id not in (select o.step_id from other.transformed_steps o)) then 'step'
        when (r.task, r.step_ids) in (select (o.task, o.step_ids) from other.filtered_dataset o)
            then 'wording'
        when r.task = 'single' and r.step_ids[1] in (select o.step_id from other.exclusions o)
            then 'left out: ' || (select any_value(e.reason) from other.exclusions e
                where e.step_id = r.step_ids[1])
        else 'balance' end""",
    "exclusions": """case
        when r.step_id not in (select o.step_id from other.transformed_steps o) then 'step'
        else 'record' end""",
    "token_counts": "'program'",
    "zoo": "'pair'",
}
#: Columns that are no content of a row.
_NO_CONTENT: Final = ("unit",)
EXAMPLES: Final = 5
#: Starts of the names of settings that are part of the key of a survey.
_OF_STEPS: Final = ("seed", "steps.")


class NoBuild(RuntimeError):
    """A path at which there is no build, or one whose file cannot be read."""


@dataclass(frozen=True, slots=True)
class Side:
    """Rows that only one of the builds has: how many for which reason, and the first ids."""

    reasons: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many."""
        return sum(self.reasons.values())


@dataclass(frozen=True, slots=True)
class TableDifference:
    """One table: rows in both builds, rows that came and went, and columns that changed."""

    before: int
    after: int
    came: Side = Side()
    went: Side = Side()
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.came.rows or self.went.rows or self.changed)


@dataclass(frozen=True, slots=True)
class Change:
    """A setting, version or release that differs: which, and both values as text."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Two builds: their tables, and what may be behind the differences."""

    tables: Mapping[str, TableDifference]
    settings: tuple[Change, ...]
    versions: tuple[Change, ...]

    @property
    def same(self) -> bool:
        """Whether all tables are equal; how they came about may differ."""
        return all(table.same for table in self.tables.values())


def warehouse_file(build: Path) -> Path:
    """The DuckDB file of a build that is named by it or by its data folder. Raises NoBuild."""
    inside = [build, build / "steptp.duckdb", build / "data" / "steptp.duckdb"]
    for path in inside:
        if path.is_file():
            return path
    raise NoBuild(f"no build at {build}: name a data folder with a steptp.duckdb, or such a file")


def difference(before: Path, after: Path, tables: Collection[str] = tuple(KEYS)) -> Difference:
    """Compare two warehouses, by file or data folder; of the tables those named. Raises NoBuild."""
    with _both(warehouse_file(before), warehouse_file(after)) as connection:
        columns = {side: _columns(connection, side) for side in ("a", "b")}
        compared = {
            name: _table(connection, name, columns)
            for name in KEYS
            if name in tables and name in columns["a"] and name in columns["b"]
        }
        settings = _settings(connection)
        versions = [*_versions(connection, columns)]
        if not any(setting.what.startswith(_OF_STEPS) for setting in settings):
            versions += _codes(connection, columns)
        return Difference(compared, settings, tuple(versions))


@contextmanager
def _both(before: Path, after: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Both files in one connection, as ``a`` and ``b``; they may be read meanwhile, and be one."""
    with duckdb.connect() as connection:
        for name, path in (("a", before), ("b", after)):
            quoted = str(path.resolve()).replace("'", "''")
            try:
                # In a connection of its own kind: a file cannot be attached twice.
                if name == "b" and path.resolve() == before.resolve():
                    connection.execute("create schema b")
                    for (table,) in connection.execute(
                        "select table_name from duckdb_tables() where database_name = 'a'"
                    ).fetchall():
                        connection.execute(f"create view b.{table} as from a.main.{table}")
                else:
                    connection.execute(f"attach '{quoted}' as {name} (read_only)")
            except duckdb.Error as error:
                raise NoBuild(f"{path}: {str(error).strip().splitlines()[0]}") from error
        yield connection


def _columns(connection: duckdb.DuckDBPyConnection, side: str) -> dict[str, list[str]]:
    """The columns of every table of a build."""
    rows = connection.execute(
        "select table_name, column_name from duckdb_columns() where not internal and "
        "(database_name = ? or schema_name = ?) order by table_name, column_index",
        [side, side],
    ).fetchall()
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> Any:  # noqa: ANN401 - SQL
    ((value,),) = connection.execute(query).fetchall()
    return value


def _table(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Mapping[str, dict[str, list[str]]]
) -> TableDifference:
    keys = KEYS[name]
    match = " and ".join(f"x.{key} = y.{key}" for key in keys)
    ident = " || ' ' || ".join(f"x.{key}" for key in keys)
    both = f"a.{name} x join b.{name} y on {match}"
    shared = [
        c for c in columns["a"][name] if c in columns["b"][name] and c not in (*keys, *_NO_CONTENT)
    ]
    differing = [f'(x."{c}" is distinct from y."{c}")' for c in shared]
    counted = ", ".join(f"count(*) filter ({test})" for test in differing)
    any_differs = " or ".join(differing) or "false"
    (counts,) = connection.execute(f"select {counted or '0'} from {both}").fetchall()
    examples = connection.execute(
        f"select {ident} from {both} where {any_differs} order by 1 limit {EXAMPLES}"
    ).fetchall()
    return TableDifference(
        before=_one(connection, f"select count(*) from a.{name}"),
        after=_one(connection, f"select count(*) from b.{name}"),
        came=_side(connection, name, "b", "a", columns),
        went=_side(connection, name, "a", "b", columns),
        changed=_one(connection, f"select count(*) from {both} where {any_differs}"),
        columns={c: n for c, n in zip(shared, counts, strict=bool(shared)) if n},
        examples=tuple(row[0] for row in examples),
    )


def _side(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    own: str,
    other: str,
    columns: Mapping[str, dict[str, list[str]]],
) -> Side:
    """Rows of one build that the other lacks, with reasons; rows of equal key count once."""
    match = " and ".join(f"o.{key} = r.{key}" for key in KEYS[name])
    ident = " || ' ' || ".join(f"r.{key}" for key in KEYS[name])
    reason = REASONS[name].replace("own.", f"{own}.").replace("other.", f"{other}.")
    rows = f"{own}.{name} r where not exists (select 1 from {other}.{name} o where {match})"
    try:
        counted = connection.execute(
            f"select {reason} as why, count(*) from {rows} group by why order by 2 desc, 1"
        ).fetchall()
    except duckdb.BinderException:
        # A build of an older release lacks a column that the reason looks at.
        counted = [("unknown", _one(connection, f"select count(*) from {rows}"))]
    examples = connection.execute(
        f"select {ident} from {rows} order by 1 limit {EXAMPLES}"
    ).fetchall()
    return Side({why: n for why, n in counted if n}, tuple(row[0] for row in examples))


def _settings(connection: duckdb.DuckDBPyConnection) -> tuple[Change, ...]:
    """Settings of the profile that differ, by their dotted names."""
    before, after = (
        dict(_flat("", json.loads(_one(connection, f"select profile from {side}.build"))))
        for side in ("a", "b")
    )
    return tuple(
        Change(name, before.get(name, "absent"), after.get(name, "absent"))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else key, inner)
    elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        for place, inner in enumerate(value):
            label = inner.get("name", place)
            yield from _flat(f"{name}[{label}]", inner)
    else:
        yield name, json.dumps(value, ensure_ascii=False)


def _versions(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, dict[str, list[str]]]
) -> Iterator[Change]:
    """Code versions by stage, versions of strategies, toolchains and zoo verdicts that differ."""
    questions = {
        "code of stage": ("lineage", "stage", "code_version"),
        "strategy": ("transformed_steps", "strategy", "strategy_version"),
        "toolchain of": ("gpu_verification", "target", "toolchain"),
        "releases of job": ("runs", "job", "releases"),
    }
    for what, (table, by, value) in questions.items():
        if not all({by, value} <= set(columns[side].get(table, ())) for side in ("a", "b")):
            continue
        before, after = (
            dict(
                connection.execute(
                    f"select {by}, string_agg(distinct {value}, ', ' order by {value}) "
                    f"from {side}.{table} group by all order by all"
                ).fetchall()
            )
            for side in ("a", "b")
        )
        for name in sorted(before.keys() & after.keys()):
            if before[name] != after[name]:
                yield Change(f"{what} {name}", before[name], after[name])


def _codes(
    connection: duckdb.DuckDBPyConnection, columns: Mapping[str, dict[str, list[str]]]
) -> list[Change]:
    """Strategies whose code differs, with digests of their units; all of them as one change.

    The key of a survey names the program, settings of steps and the code of the strategy. So where
    settings agree and one program's survey is other work, it was other code.
    """
    wanted = {"survey_id", "strategy", "unit"}
    if not all(wanted <= set(columns[side].get("surveys", ())) for side in ("a", "b")):
        return []
    rows = connection.execute(
        "select x.strategy, md5(string_agg(x.unit, '' order by x.survey_id)), "
        "md5(string_agg(y.unit, '' order by x.survey_id)) "
        "from a.surveys x join b.surveys y using (survey_id) group by all order by all"
    ).fetchall()
    found = [Change(f"code of strategy {row[0]}", *row[1:]) for row in rows if row[1] != row[2]]
    if len(found) < len(rows) or len(rows) < 2:
        return found
    return [Change("code of all strategies", found[0].before, found[0].after)]
