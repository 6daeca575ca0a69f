"""What must hold across tables, as queries for rows that break it; none may find a row."""

from dataclasses import dataclass
from typing import Final

import duckdb

from steptp_dagster.dataset.acceptance import DECISIVE

#: Check -> (what it means, query for the rows that break it).
CHECKS: Final[dict[str, tuple[str, str]]] = {
    "references": (
        "Every id that a row names exists.",
        """
        select 'step -> source' as reference, step_id as id
        from transformed_steps anti join source_programs using (source_id)
        union all select 'step -> parent', step_id
        from transformed_steps s anti join leir_programs l on l.leir_id = s.parent_leir_id
        union all select 'step -> result', step_id
        from transformed_steps s anti join leir_programs l on l.leir_id = s.result_leir_id
        union all select 'step -> earlier step', s.step_id
        from transformed_steps s anti join transformed_steps t on t.step_id = s.parent_step_id
        where s.parent_step_id is not null
        union all select 'source -> translation', source_id
        from source_programs anti join translations using (source_id)
        union all select 'verdict -> step', step_id
        from gpu_verification anti join transformed_steps using (step_id)
        union all select 'record -> step', r.record_id
        from (select record_id, unnest(step_ids) as step_id from filtered_dataset) r
        anti join transformed_steps using (step_id)
        union all select 'trajectory -> step', t.trajectory_id
        from (select trajectory_id, unnest(step_ids) as step_id from trajectories) t
        anti join transformed_steps using (step_id)
        union all select 'negative -> step', negative_id
        from negatives anti join transformed_steps using (step_id)
        union all select 'record -> trajectory', record_id
        from filtered_dataset anti join trajectories using (trajectory_id)
        where trajectory_id is not null
        union all select 'record -> negative', record_id
        from filtered_dataset anti join negatives using (negative_id)
        where negative_id is not null
        """,
    ),
    "ids_unique": (
        "An id names one row.",
        """
        select 'leir_id' as id, leir_id from leir_programs group by leir_id having count(*) > 1
        union all select 'step_id', step_id
        from transformed_steps group by step_id having count(*) > 1
        union all select 'record_id', record_id
        from filtered_dataset group by record_id having count(*) > 1
        union all select 'step_id, target', step_id
        from gpu_verification group by step_id, target having count(*) > 1
        """,
    ),
    "no_wrong_pair": (
        "No record shows a step that was rejected or that the decisive target has not accepted, or "
        "that follows such a step.",
        f"""
        with recursive shown as (
            select record_id, unnest(step_ids) as step_id from filtered_dataset
            union
            select shown.record_id, s.parent_step_id
            from shown join transformed_steps s using (step_id)
            where s.parent_step_id is not null
        )
        select record_id, step_id from shown anti join (
            select step_id from gpu_verification group by step_id
            having bool_or(equal_pass and target = '{DECISIVE}')
                and bool_and(equal_pass) and bool_and(equality <> 'rejected')
        ) using (step_id)
        """,
    ),
    "trajectories": (
        "Every step of a trajectory starts from the result of the one before; no structure of a "
        "program comes twice; a record shows none that was rejected as a whole.",
        """
        with steps as (
            select trajectory_id, source_id, first_leir_id, last_leir_id, length, n,
                step_ids[n] as step_id, step_ids[n - 1] as before
            from trajectories, unnest(range(1, length + 1)) as u(n)
        ), shown as (
            select t.*, s.parent_leir_id, s.result_leir_id, s.parent_step_id
            from steps t join transformed_steps s using (step_id)
        )
        select trajectory_id, 'is no chain' as what from shown
        where n = 1 and (parent_leir_id <> first_leir_id or parent_step_id is not null)
            or n > 1 and parent_step_id is distinct from before
            or n = length and result_leir_id <> last_leir_id
        union all
        select trajectory_id, 'comes back to a structure' from (
            select trajectory_id, length, structural_hash from shown
            join leir_programs on leir_id = result_leir_id
            union all select trajectory_id, length, structural_hash from trajectories
            join leir_programs on leir_id = first_leir_id
        ) group by trajectory_id, length having count(distinct structural_hash) < length + 1
        union all
        select record_id, 'was rejected'
        from filtered_dataset join trajectories using (trajectory_id) where equal_pass is not true
        """,
    ),
    "negatives_rejected": (
        "Whatever a record calls wrong was rejected for what it is, and is no right step.",
        """
        select record_id, negative_id from filtered_dataset
        where task = 'negative' and negative_id is null
        union all select record_id, negative_id
        from filtered_dataset join negatives using (negative_id)
        where equal_pass or not usable or reason is null or negatives.equality <> 'rejected'
        union all select record_id, negative_id from filtered_dataset
        where (equality = 'rejected') <> (task = 'negative')
        union all select record_id, negative_id
        from filtered_dataset join negatives using (negative_id)
        join transformed_steps right_step using (parent_leir_id)
        join gpu_verification v on v.step_id = right_step.step_id and v.equal_pass
        join leir_programs p on p.leir_id = right_step.result_leir_id
        where p.structural_hash = candidate_hash
        """,
    ),
    "splits_disjoint": (
        "No family and no program structure stands in two splits.",
        """
        select family as tie, count(distinct split) as splits
        from filtered_dataset group by family having count(distinct split) > 1
        union all select structural_hash, count(distinct split) from (
            select split, structural_hash from filtered_dataset
            union all select r.split, l.structural_hash
            from (select split, unnest(step_ids) as step_id from filtered_dataset) r
            join transformed_steps using (step_id)
            join leir_programs l on l.leir_id = result_leir_id
        ) group by structural_hash having count(distinct split) > 1
        """,
    ),
    "no_near_copy": (
        "No workload of evaluation, and no near copy of one, is in the training split.",
        """
        select program, nearest from leakage where near or shared > 0 or split = 'train'
        union all select program, null
        from (select distinct program from filtered_dataset where split <> 'train')
        anti join leakage using (program)
        """,
    ),
    "records_have_lineage": (
        "Every record leads back to a source program and to the runs that made it.",
        """
        select r.record_id from filtered_dataset r anti join (
            select record_id from record_lineage
            where source_run is not null and step_run is not null
              and verdict_run is not null and record_run is not null
        ) l using (record_id)
        """,
    ),
    "grounding": (
        "Every claim of every record's reasoning holds in the IR.",
        """
        select record_id, mismatches
        from (select record_id, unnest(step_ids) as step_id from filtered_dataset)
        join transformed_steps using (step_id) where len(mismatches) > 0
        """,
    ),
    "zoo": (
        "The verifier was tried on known pairs: it rejects all wrong and accepts all right ones.",
        """
        select pair, kind from zoo where wrong = accepted
        union all select 'none', 'no wrong pair was tried'
        where not exists (select 1 from zoo where wrong)
        union all select 'none', 'no right pair was tried'
        where not exists (select 1 from zoo where not wrong)
        """,
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check: how many rows break it, and the first of them."""

    check: str
    meaning: str
    broken: int
    first: tuple[dict[str, str], ...]

    @property
    def holds(self) -> bool:
        """Whether nothing breaks it."""
        return self.broken == 0


def integrity(connection: duckdb.DuckDBPyConnection) -> tuple[Finding, ...]:
    """Run all checks on a loaded warehouse."""
    findings = []
    for name, (meaning, query) in CHECKS.items():
        cursor = connection.execute(query)
        columns = [d[0] for d in cursor.description or ()]
        rows = sorted([str(value) for value in row] for row in cursor.fetchall())
        first = tuple(dict(zip(columns, row, strict=True)) for row in rows[:5])
        findings.append(Finding(name, meaning, len(rows), first))
    return tuple(findings)
