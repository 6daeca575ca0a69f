"""A strategy made of rules: it finds their sites, applies one of them, and explains it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from steptp_dagster.leir.ast import Equation, Expr, Nest
from steptp_dagster.leir.lazy import lazy
from steptp_dagster.leir.nest_memory import per_nest
from steptp_dagster.leir.printer import expr_text
from steptp_dagster.leir.signature import SignedProgram
from steptp_dagster.leir.updates import classify, pure_form
from steptp_dagster.leir.walk import Located, Path, accesses_in, equations_in, iter_expr, replace_at
from steptp_dagster.strategies.algebra import loop_sums
from steptp_dagster.strategies.algebra.conditions import (
    Proof,
    Question,
    decides_nothing,
    in_range,
    new_parts,
    proof_of,
    types_of_operands,
)
from steptp_dagster.strategies.algebra.loop_sums import LoopLaw, LoopWay
from steptp_dagster.strategies.algebra.places import Found, Matcher
from steptp_dagster.strategies.algebra.rules import Match, Place, Rule
from steptp_dagster.strategies.algebra.trees import At, negated, subtracted, with_part
from steptp_dagster.strategies.base import Parameter, Refusal, Site, Strategy, Survey
from steptp_dagster.strategies.dataflow import flow_at
from steptp_dagster.strategies.definitions import located
from steptp_dagster.strategies.evidence import after as after_fact
from steptp_dagster.strategies.evidence import before as before_fact
from steptp_dagster.strategies.evidence import effects, pair, transition
from steptp_dagster.strategies.facts import Evidence, Explanation, Fact
from steptp_dagster.strategies.legality import fault
from steptp_dagster.strategies.remembered import PerProgram

#: What the value of every rule but an exact one must not do, in this order.
TYPES: Final = "types-differ"
RANGE: Final = "value-may-overflow"
DECISION: Final = "result-decides"


class AlgebraicStrategy(Strategy):
    """A strategy that rewrites one part of one equation's value by one of its ``rules``.

    A site is the path of the equation, the place of the part in its value (``at``: positions of
    operands from 1, left out for the whole value), the ``rule`` and, where the rule has several
    ways to go there, the ``choice``. A way whose needs are not proved is a refusal with the name
    of the need.
    """

    level = "math"
    version = "1"
    rules: ClassVar[tuple[Rule, ...]]
    #: A law over loops.
    loop_law: ClassVar[LoopLaw | None] = None

    @lazy
    def _rules(self) -> dict[str, Rule]:
        return {rule.name: rule for rule in self.rules}

    @lazy
    def _known(self) -> PerProgram["_Known"]:
        """What a survey found and proved serves the steps that are taken and their explanations."""
        return PerProgram(lambda _: _Known())

    @lazy
    def _matches(self) -> Callable[[Nest], Mapping[Path, tuple[Found, ...]]]:
        """Where the rules match in a nest, by the path below it."""
        return per_nest(Matcher(self.rules))

    def preconditions_at(self, site: Site) -> tuple[str, ...]:
        """Those of the rule that is applied."""
        super().preconditions_at(site)
        if self._over_loops(site):
            return loop_sums.NEEDS[site.text("rule")]
        return required(self._rules[site.text("rule")])

    def _over_loops(self, site: Site) -> bool:
        return self.loop_law is not None and site.text("rule") == self.loop_law.name

    def survey(self, program: SignedProgram) -> Survey:
        """Every way of every rule at every part of every equation, in text order."""
        sites: list[Site] = []
        refusals: dict[Refusal, None] = {}
        broken: bool | None = None
        for found in self._ways(program):
            problem = found.problem
            if problem is None:
                # no rule reads, writes or moves anything, so a legal program stays legal
                broken = fault(program) is not None if broken is None else broken
                problem = fault(found.result) if broken else None
            if problem is None:
                sites.append(found.site(self.name))
            else:
                refusals[Refusal(self.name, found.one.path, *problem)] = None
        for way in self._loop_ways(program):
            problem = way.problem or fault(way.result)
            if problem is None:
                sites.append(self._loop_site(way))
            else:
                refusals[Refusal(self.name, way.path, *problem)] = None
        return Survey(
            tuple(sorted(sites, key=lambda site: site.path)),
            tuple(sorted(refusals, key=lambda refusal: refusal.path)),
        )

    def _loop_ways(self, program: SignedProgram) -> tuple[LoopWay, ...]:
        if self.loop_law is None:
            return ()
        known = self._known(program)
        if known.loop_ways is None:
            known.loop_ways = tuple(self.loop_law.ways(program))
        return known.loop_ways

    def _loop_site(self, way: LoopWay) -> Site:
        law = self.loop_law
        if law is None:
            raise ValueError(f"{self.name} has no law over loops")
        return Site.of(self.name, way.path, rule=law.name, choice=way.choice)

    def _loop_way(self, program: SignedProgram, site: Site) -> LoopWay:
        for way in self._loop_ways(program):
            if self._loop_site(way) == site:
                return way
        raise ValueError(f"no site of this program: {site.describe()}")

    def apply(self, program: SignedProgram, site: Site) -> SignedProgram:
        """Put the result of the rule in the place of the part."""
        if self._over_loops(site):
            return self._loop_way(program, site).result
        return self._way(program, site).result

    def explain(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        """The law, what its letters stand for here, and what proves that it may be used."""
        if self._over_loops(site):
            return self._explain_loop(before, after, site)
        way = self._way(before, site)
        path, rule = site.path, way.rule
        part = before_fact("part_text", path, way.at, value=expr_text(way.place.expr))
        whole = before_fact("value_text", path, value=expr_text(way.one.equation.value))
        letters = tuple(_stands_for(way, letter, expr) for letter, expr in way.match.letters)
        form = way.match.form
        law = pair("law", rule.name, *filter(None, (form,)), value=rule.law_of(form))
        return Explanation(
            state=(whole, part) if way.at else (whole,),
            preconditions=tuple(Evidence(name, way.evidence(name)) for name in required(rule)),
            decision=(law, *letters),
            transition=transition(before, after),
            soundness_rule=rule.argument,
            soundness=(pair("same_algebra", path, value=True),),
            effect=effects(before, after),
        )

    def _explain_loop(self, before: SignedProgram, after: SignedProgram, site: Site) -> Explanation:
        way, law = self._loop_way(before, site), self.loop_law
        if law is None:
            raise ValueError(f"{self.name} has no law over loops")
        path = site.path
        form = () if way.op == "*" else (way.op,)
        letters = [("a", way.factor), ("b", way.rest)]
        return Explanation(
            state=(
                before_fact("value_text", path, value=expr_text(_value_at(before, path))),
                before_fact("reduction_loops", path, value=classify(before)[path].reduction_loops),
            ),
            preconditions=tuple(Evidence(n, way.evidence(n)) for n in way.provers),
            decision=(
                pair("law", law.name, *form, value=law.law_of(way.op)),
                *_seen(before, after, path, letters),
            ),
            transition=transition(before, after),
            soundness_rule="factor-of-a-sum",
            soundness=(after_fact("value_text", path, value=expr_text(_value_at(after, path))),),
            effect=effects(before, after),
        )

    def _ways(self, program: SignedProgram) -> Iterator["Way"]:
        for i, nest in enumerate(program.program.nests):
            if self._may_match(nest):
                for one in equations_in(nest, (i,)):
                    yield from self._ways_at(program, one)

    def _may_match(self, nest: Nest) -> bool:
        """Whether there may be a way at an equation of a nest."""
        return bool(self._matches(nest))

    def _way(self, program: SignedProgram, site: Site) -> "Way":
        ways = self._known(program).ways.get(site.path)
        if ways is None:
            ways = self._ways_at(program, located(program.program, site.path))
        for way in ways:
            if way.site(self.name) == site:
                return way
        raise ValueError(f"no site of this program: {site.describe()}")

    def _ways_at(self, program: SignedProgram, one: Located) -> tuple["Way", ...]:
        """Every way at one equation, with what was proved about it before."""
        known = self._known(program).ways
        found = known.get(one.path)
        if found is None:
            found = known[one.path] = tuple(self._find(program, one))
        return found

    def _find(self, program: SignedProgram, one: Located) -> Iterator["Way"]:
        """Every way at one equation."""
        matches = self._matches(program.program.nests[one.path[0]])
        for found in matches.get(one.path[1:], ()):
            way = Way(program, one, found.place, found.rule, found.match)
            if way.keeps_update():
                yield way


@dataclass(slots=True)
class _Known:
    """The ways that a strategy found in one program, by the path of the equation."""

    ways: dict[Path, tuple["Way", ...]] = field(default_factory=dict)
    loop_ways: tuple[LoopWay, ...] | None = None


def _value_at(program: SignedProgram, path: Path) -> Expr:
    return located(program.program, path).equation.value


@dataclass(frozen=True, eq=False)
class Way:
    """One application of a rule at a part of an equation of a program, legal or not."""

    program: SignedProgram
    one: Located
    place: Place
    rule: Rule
    match: Match

    @property
    def at(self) -> At:
        """The place of the part in the value."""
        return self.place.at

    @lazy
    def equation(self) -> Equation:
        """The equation after the step."""
        value = with_part(self.one.equation.value, self.at, self.match.result)
        return replace(self.one.equation, value=value)

    def site(self, strategy: str) -> Site:
        """How the way is named."""
        named: dict[str, Parameter] = {"rule": self.rule.name}
        if self.at:
            named["at"] = ".".join(str(i + 1) for i in self.at)
        if self.match.choice:
            named["choice"] = self.match.choice
        return Site.of(strategy, self.one.path, **named)

    @lazy
    def result(self) -> SignedProgram:
        """The program after the step."""
        changed = replace_at(self.program.program, self.one.path, self.equation)
        return SignedProgram(changed, self.program.signature)

    def keeps_update(self) -> bool:
        """Whether an update stays the update that it is."""
        path, target = self.one.path, self.one.equation.target.name
        if target not in flow_at(self.program.program.nests[path[0]], path[1:]).read:
            return True
        if not any(access.name == target for access in accesses_in(self.one.equation.value)):
            return True
        if classify(self.program)[path].kind != "update":
            return True
        old, new = pure_form(self.one.equation), pure_form(self.equation)
        return old is not None and new is not None and old.op == new.op

    @lazy
    def problem(self) -> tuple[str, str] | None:
        """The first need that is not proved, by name and in words."""
        for name in required(self.rule):
            proof = self._proof(name)
            if isinstance(proof, str):
                return name, proof
        return None

    def evidence(self, name: str) -> tuple[Fact, ...]:
        """The facts that prove a need that holds; what was looked at, where nothing is to prove."""
        proof = self._proof(name)
        if isinstance(proof, str):
            raise TypeError(f"{name}: {proof}")
        if name == RANGE:
            proof = (*proof, *self._within())
        if proof:
            return proof
        path = self.one.path
        if name == RANGE or not self._needs(name):
            texts = expr_text(self.place.expr), expr_text(self.match.result)
            return (pair("same_value", path, *texts, value=True),)
        dtype = self.place.node.dtype.name
        text = expr_text(self.place.expr)
        return (before_fact("part_dtype", path, text, value=dtype),)

    def _needs(self, name: str) -> bool:
        return name == TYPES or any(need.precondition == name for need in self.match.needs)

    def _within(self) -> tuple[Fact, ...]:
        """Why new values that are not bounded stay in range."""
        match = self.match
        new = new_parts(self.one.equation.value, self.equation.value)
        texts = tuple(expr_text(e) for e in new if e in match.within and e != match.result)
        if not texts:
            return ()
        if match.within_by:
            return self.evidence(match.within_by)
        whole = expr_text(self.place.expr)
        return (before_fact("range_kept", self.one.path, whole, texts, value=True),)

    def _proof(self, name: str) -> Proof:
        found = self._proofs.get(name)
        if found is None:
            found = self._proofs[name] = self._prove(name)
        return found

    @lazy
    def _proofs(self) -> dict[str, Proof]:
        return {}

    def _prove(self, name: str) -> Proof:
        question = Question(self.program, self.one.path, self.one.equation)
        if name == TYPES:
            return types_of_operands(self.place.node, self.match, self.equation)
        if name == RANGE:
            return in_range(question, self.place.node, self.match)
        if name == DECISION:
            return decides_nothing(question, self.at)
        facts: list[Fact] = []
        for need in self.match.needs:
            if need.precondition == name:
                proof = proof_of(question, need)
                if isinstance(proof, str):
                    return proof
                facts += proof
        return tuple(dict.fromkeys(facts))


def required(rule: Rule) -> tuple[str, ...]:
    """The preconditions of a rule: types, its own needs, and what none but an exact one keeps."""
    if rule.kind == "exact":
        return (TYPES, *rule.needs)
    return (TYPES, *rule.needs, RANGE, DECISION)


def _seen(
    before: SignedProgram, after: SignedProgram, path: Path, letters: list[tuple[str, Expr]]
) -> Iterator[Fact]:
    """What letters of a law over loops stand for, where it can be seen at the sum."""
    for letter, expr in letters:
        text = expr_text(expr)
        for program, fact in ((before, before_fact), (after, after_fact)):
            if _occurs(located(program.program, path).equation, text):
                yield fact("stands_for", path, text, letter, value=True)
                break


def _stands_for(way: Way, letter: str, expr: Expr) -> Fact:
    """What a letter stands for, where it can be seen; or that it stands for minus a term."""
    path, old, new = way.one.path, way.one.equation, way.equation
    for equation, fact in ((old, before_fact), (new, after_fact)):
        if _occurs(equation, expr_text(expr)):
            return fact("stands_for", path, expr_text(expr), letter, value=True)
    term = negated(expr)
    text = expr_text(term)
    # a coefficient need be no part of what it is subtracted in: ``A`` squared of ``A*A*C`` is none
    fact = before_fact if subtracted(old.value, term) else after_fact
    return fact("stands_for_minus", path, text, letter, value=True)


def _occurs(equation: Equation, text: str) -> bool:
    return any(expr_text(node) == text for node in iter_expr(equation.value))
