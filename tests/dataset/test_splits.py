from hypothesis import given
from hypothesis import strategies as st

from steptp_dagster.dataset.config import SplitPlan
from steptp_dagster.dataset.splits import Member, assign, components, leaks

_MEMBERS = st.lists(
    st.builds(
        Member,
        program=st.text("pqrstuvw", min_size=1, max_size=2),
        family=st.sampled_from("ABCDEF"),
        structures=st.frozensets(st.sampled_from("123456789"), max_size=3),
    ),
    unique_by=lambda m: m.program,
)


@given(_MEMBERS, st.integers(0, 5))
def test_no_tie_crosses_a_split(members: list[Member], seed: int) -> None:
    split = assign(members, SplitPlan(), seed)
    pairs = [(f"f{m.family}", split[m.program]) for m in members]
    pairs += [(s, split[m.program]) for m in members for s in m.structures]
    assert leaks(pairs) == {}
    assert set(split) == {m.program for m in members}


@given(st.permutations([Member(p, p.upper(), frozenset(p)) for p in "abcdefgh"]))
def test_order_does_not_matter(members: list[Member]) -> None:
    plan = SplitPlan(0.5, 0.25, 0.25)
    split = assign(members, plan, 3)
    assert split == assign(sorted(members, key=lambda m: m.program), plan, 3)
    assert sorted(split.values()) == ["test"] * 2 + ["train"] * 4 + ["validation"] * 2


def test_every_split_gets_something_where_that_is_possible() -> None:
    members = [Member(p, p, frozenset()) for p in "abc"]
    assert set(assign(members, SplitPlan(), 0).values()) == {"train", "validation", "test"}
    assert set(assign(members[:1], SplitPlan(), 0).values()) == {"train"}


def test_ties_are_transitive() -> None:
    members = [
        Member("a", "F", frozenset("1")),
        Member("b", "G", frozenset("12")),
        Member("c", "H", frozenset("2")),
        Member("d", "I", frozenset("3")),
    ]
    assert components(members) == (("a", "b", "c"), ("d",))


def test_leaks_are_found() -> None:
    assert leaks([("x", "train"), ("x", "test"), ("y", "test")]) == {"x": ("test", "train")}
