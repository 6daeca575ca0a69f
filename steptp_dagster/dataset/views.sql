-- Views that answer the common questions without joins.

create view step_overview as
select
    s.step_id, p.program, p.family, p.dtype, p.form, p.shapes, s.strategy, s.strategy_level, s.site,
    s.parameters, s.step_depth, v.target, v.equal_pass, v.equality, v.bitwise, v.reason,
    b.text as before_text, a.text as after_text
from transformed_steps s
join source_programs p using (source_id)
join leir_programs b on b.leir_id = s.parent_leir_id
join leir_programs a on a.leir_id = s.result_leir_id
left join gpu_verification v using (step_id);

create view record_lineage as
select
    r.record_id, r.split, s.step_id, s.strategy, s.parent_leir_id, s.result_leir_id,
    p.source_id, p.program, p.code_hash,
    l_source.run_id as source_run, l_step.run_id as step_run, l_verdict.run_id as verdict_run,
    l_record.run_id as record_run, l_record.created_at
from filtered_dataset r
cross join unnest(r.step_ids) as u(step_id)
join transformed_steps s on s.step_id = u.step_id
join source_programs p on p.source_id = s.source_id
left join gpu_verification v on v.step_id = s.step_id
left join lineage l_source on l_source.unit = p.unit
left join lineage l_step on l_step.unit = s.unit
left join lineage l_verdict on l_verdict.unit = v.unit
left join lineage l_record on l_record.unit = r.unit;

create view refusals as
select v.strategy, p.program, p.dtype, r.reason, r.count, r.message
from surveys v
join source_programs p using (source_id)
cross join unnest(v.refusals) as u(r);
