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

-- How many steps and records there are of each strategy, before and after the balance.
create view strategy_distribution as
with kept as (
    select strategy, task, count(*) as records from filtered_dataset group by all
)
select
    s.strategy, s.strategy_level, count(*) as steps,
    count(*) filter (step_depth > 0) as chained_steps,
    count(distinct s.source_id) as sources,
    coalesce(any_value(k.records), 0) as records
from transformed_steps s
left join (select strategy, sum(records) as records from kept group by all) k using (strategy)
group by all order by all;

-- Verdicts by strategy, family, dtype and target.
create view pass_rates as
select
    s.strategy, p.family, p.dtype, v.target, count(*) as verified,
    count(*) filter (v.build_pass) as built,
    count(*) filter (v.exec_pass) as executed,
    count(*) filter (v.equal_pass) as accepted,
    count(*) filter (v.bitwise) as bitwise,
    round(count(*) filter (v.equal_pass) / count(*), 4) as pass_rate
from gpu_verification v
join transformed_steps s using (step_id)
join source_programs p using (source_id)
group by all order by all;

-- Tokens of each task: what is read, and what is written.
create view token_ratios as
select
    task, split, count(*) as records, sum(prompt_tokens)::bigint as prompt_tokens,
    sum(reasoning_tokens)::bigint as reasoning_tokens,
    sum(answer_tokens)::bigint as answer_tokens,
    round(sum(reasoning_tokens + answer_tokens) / sum(prompt_tokens), 4) as written_per_read,
    round(sum(reasoning_tokens) / sum(answer_tokens), 4) as reasoning_per_answer
from filtered_dataset group by all order by all;

-- Tokens that the two spellings of LEIR save against each language, over the programs that are
-- counted in it: shares of the totals, and the median over programs.
create view token_savings as
select
    language, count(*) as programs, sum(tokens)::bigint as tokens, sum(leir)::bigint as leir_tokens,
    sum(compact)::bigint as compact_tokens,
    round(1 - sum(leir) / sum(tokens), 4) as leir_saves,
    round(1 - sum(compact) / sum(tokens), 4) as compact_saves,
    round(median(1 - leir / tokens), 4) as leir_saves_median,
    round(median(1 - compact / tokens), 4) as compact_saves_median
from (
    select leir_id, leir, compact, unnest(languages) as language, unnest(counts) as tokens
    from (
        select
            leir_id, leir, compact,
            ['leir', 'tir_blocks', 'tir_loops', 'tir_exact', 'tvm_file', 'tvm_kernels',
             'cuda_file', 'cuda_kernels'] as languages,
            [leir, tir_blocks, tir_loops, tir_exact, tvm_file, tvm_kernels, cuda_file,
             cuda_kernels] as counts
        from token_counts
    )
)
where tokens is not null
group by all order by all;

-- The same share of the totals by kind of program and dtype; null: all of them. Of programs that a
-- language lacks neither side counts. What is both a translation and a result is an original.
create view token_savings_by_dtype as
with counted as (
    select
        if(bool_or(original), 'originals', 'results') as programs, dtype, token_counts.*
    from token_counts
    join (
        select leir_id, source_id, true as original from translations
        union
        select result_leir_id, source_id, false from transformed_steps
    ) using (leir_id)
    join source_programs using (source_id)
    where sampled
    group by all
)
select
    programs, dtype, count(*) as counted, sum(leir)::bigint as leir_tokens,
    round(1 - sum(leir) filter (tir_blocks is not null) / sum(tir_blocks), 4) as tir_blocks,
    round(1 - sum(leir) filter (tir_loops is not null) / sum(tir_loops), 4) as tir_loops,
    round(1 - sum(leir) filter (tir_exact is not null) / sum(tir_exact), 4) as tir_exact,
    round(1 - sum(leir) filter (tvm_file is not null) / sum(tvm_file), 4) as tvm_file,
    round(1 - sum(leir) filter (tvm_kernels is not null) / sum(tvm_kernels), 4) as tvm_kernels,
    round(1 - sum(leir) filter (cuda_file is not null) / sum(cuda_file), 4) as cuda_file,
    round(1 - sum(leir) filter (cuda_kernels is not null) / sum(cuda_kernels), 4) as cuda_kernels
from counted
group by grouping sets ((programs, dtype), (programs), ())
order by programs nulls last, list_position(['f16', 'bf16', 'f32', 'f64'], dtype) nulls last;

-- How long chains of steps are, and how they were judged as a whole.
create view trajectory_lengths as
select
    length, count(*) as trajectories, count(*) filter (equal_pass) as accepted,
    count(distinct source_id) as sources
from trajectories group by all order by all;

-- What the build cost: seconds of work by stage. Differs from build to build.
create view stage_times as
select
    stage, count(*) as units, round(sum(seconds), 1) as seconds,
    round(median(seconds), 4) as median_seconds, round(max(seconds), 2) as longest
from timings group by all order by all;
