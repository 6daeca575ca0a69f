"""What the strategies for weighted sums of softmax weights have in common: matches and facts."""

from steptp_dagster.leir.printer import loops_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.walk import accesses_in, loops_around
from steptp_dagster.strategies.attention import Attention
from steptp_dagster.strategies.base import Site
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, evidence, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.row_evidence import (
    exchanged_facts,
    extent_fact,
    guard_fact,
    kind_fact,
    readers_fact,
    recurrence_facts,
    reduction_fact,
    start_facts,
    streamed,
    value_fact,
    writers_fact,
)
from steptp_dagster.strategies.streaming_strategy import StreamingStrategy


class AttentionStrategy(StreamingStrategy[Attention]):
    """A strategy that rewrites a weighted sum of softmax weights, one site for each."""

    def sites_of(self, found: Attention) -> tuple[Site, ...]:
        """One site, at the equation that the result is written by."""
        return (Site.of(self.name, found.path),)

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """Show the weights' rows, that scores stay what they were, and the new values."""
        found = self.found_at(before, site)
        shown = (*shared_evidence(before, found), *self.more_evidence(before, after, found))
        return Explanation(
            state=(
                value_fact(before, found.path),
                extent_fact(before, made_at(found), found.step),
            ),
            preconditions=tuple(one for one in shown if one.precondition in self.preconditions),
            decision=(
                *self.size_facts(before, after),
                *exchanged_facts(before, after),
            ),
            transition=transition(before, after),
            soundness_rule=self.rule(before, found),
            soundness=(
                *recurrence_facts(after, streamed(before, after)),
                pair("same_signature", value=before.signature == after.signature),
            ),
            effect=effects(before, after),
        )

    def rule(self, program: SignedProgram, found: Attention) -> str:
        """The argument for the step."""
        return "rescaled-weighted-sum"

    def size_facts(self, before: SignedProgram, after: SignedProgram) -> tuple[Fact, ...]:
        """What the values of the step take in all, first of what is decided."""
        return ()

    def more_evidence(
        self, before: SignedProgram, after: SignedProgram, found: Attention
    ) -> tuple[Evidence, ...]:
        """Evidence for preconditions that this strategy alone has."""
        return ()


def made_at(found: Attention) -> tuple[int, ...]:
    """The equation that sums up, plainly or step by step."""
    return found.path if found.weighted is None else found.weighted


def shared_evidence(program: SignedProgram, found: Attention) -> tuple[Evidence, ...]:
    """Evidence for the preconditions that weighted sums have in common."""
    path, made = found.path, made_at(found)
    scores = tuple(dict.fromkeys(access.name for access in accesses_in(found.score)))
    header = loops_text(loops_around(program.program, made))
    return (
        evidence(
            "not-alone",
            before_fact("statements", path[:1], value=1),
            guard_fact(program, path),
        ),
        evidence(
            "start-not-identity",
            *(
                (value_fact(program, made),)
                if found.streamed
                else start_facts(program, (made,), ())
            ),
        ),
        evidence("reduction-loop-not-serial", kind_fact(program, made, found.step)),
        evidence(
            "rows-differ",
            *(
                (before_fact("header_text", made, value=header),)
                if found.streamed
                else (reduction_fact(program, made),)
            ),
            extent_fact(program, made, found.step),
            value_fact(program, found.maker),
            *(writers_fact(program, name) for name in found.chain),
        ),
        evidence(
            "scores-change",
            *(writers_fact(program, name) for name in scores or (found.maximum.name,)),
            readers_fact(program, found.maximum.name),
        ),
    )
