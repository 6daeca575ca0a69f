"""The rules by which steps keep the meaning of a program, and what each does to the values.

An explanation names one rule (``Explanation.soundness_rule``). A rule states the argument once,
in a sentence that holds wherever the strategy's preconditions do, and whether the result is equal
bit for bit (``exact``) or equal up to rounding (``reassociated``).
"""

from dataclasses import dataclass
from typing import Final

from steptp_dagster.strategies.base import Numerics
from steptp_dagster.strategies.facts import Explanation


@dataclass(frozen=True, slots=True)
class Rule:
    """A named argument. ``because`` is a sentence that starts in lower case, without its stop."""

    name: str
    numerics: Numerics
    because: str


_RULES: Final = (
    Rule(
        "substitution",
        "exact",
        "a name and the expression that defines it have the same value, and the substituted"
        " expression reads the same elements as the producer did",
    ),
    Rule(
        "substitution-without-rounding",
        "reassociated",
        "a name and the expression that defines it have the same value, except that the"
        " intermediate is no longer rounded to its memory format between producer and consumer",
    ),
    Rule(
        "fusion-keeps-order",
        "exact",
        "every equation runs for the same index values as before, and every element is still"
        " written before it is read; sharing the loops only moves independent work closer",
    ),
    Rule(
        "independent-statements",
        "exact",
        "neither statement writes an element that the other reads or writes, so each computes the"
        " same values whichever comes first",
    ),
    Rule(
        "no-effect",
        "exact",
        "nothing that an output depends on, directly or through other equations, reads what the"
        " removed equations wrote",
    ),
    Rule(
        "distribution-keeps-order",
        "exact",
        "every equation runs for the same index values as before, and instances that touch one"
        " element keep their order; an intermediate with an element for each iteration holds in"
        " it what that iteration wrote",
    ),
    Rule(
        "naming",
        "exact",
        "the name is computed from the same elements, while they hold the same values, and in the"
        " type in which the part is computed, so reading it gives the very value of the part",
    ),
    Rule(
        "halves-of-their-own",
        "exact",
        "every element is computed by the same equation from copies of the elements that it read"
        " before, and stored to its place from the half that it belongs to",
    ),
    Rule(
        "ranges-put-together",
        "exact",
        "over each part of the joined range the equation reads copies of what its own nest read,"
        " and the result of that part goes where that nest stored it",
    ),
    Rule(
        "strip-mining",
        "exact",
        "the outer and inner index together count through the same values in the same order, so"
        " the same equation instances run one after another as before",
    ),
    Rule(
        "order-kept-where-it-matters",
        "exact",
        "instances that touch a common element, one of them writing, still run in the same order,"
        " or else accumulate with an operation that gives the same value in any order",
    ),
    Rule(
        "accumulation-in-another-order",
        "reassociated",
        "instances that touch a common element keep their order, except that a sum or product"
        " takes its operands in another one, which shows in the rounding",
    ),
    Rule(
        "independent-iterations",
        "exact",
        "no iteration writes what another one reads or writes, so it does not matter when and"
        " where each of them runs",
    ),
    Rule(
        "same-iterations-in-order",
        "exact",
        "the same iterations run one after another in the same order as before",
    ),
    Rule(
        "guarded-iterations-dropped",
        "exact",
        "the iterations that go are those in which the guards kept every equation from running,"
        " and the others run as before",
    ),
    Rule(
        "exact-associativity",
        "exact",
        "picking the larger or smaller of values is associative and commutative, so the partial"
        " results combine to the very same value",
    ),
    Rule(
        "wrapping-associativity",
        "exact",
        "integer sums and products wrap around, which leaves them associative and commutative, so"
        " the partial results combine to the very same value",
    ),
    Rule(
        "associativity-up-to-rounding",
        "reassociated",
        "the operation is associative over the reals, so partial results combine to the same"
        " value; in floating point the order of operations shows in the rounding",
    ),
    Rule(
        "copy-holds-same-values",
        "exact",
        "a copy in the same dtype holds the very values of the elements it was made from, none of"
        " which is written while the copy is in use, so every read finds the same value",
    ),
    Rule(
        "storage-of-its-owner",
        "exact",
        "every element is written and read by one and the same block or thread, in the order of"
        " the text, so it holds the same values wherever it is stored",
    ),
    Rule(
        "injective-layout",
        "exact",
        "one injective map of subscripts is applied to every access, so each read finds the"
        " element that the same write as before has left",
    ),
    Rule(
        "tabulated-subscripts",
        "exact",
        "the table holds the value of the subscript for every combination of its indices, so the"
        " same elements are touched in the same order",
    ),
    Rule(
        "private-accumulator",
        "exact",
        "the accumulator starts from the value that the target started from, takes the same"
        " operands in the same order and dtype, and is stored once at the end",
    ),
    Rule(
        "recomputed-at-the-seam",
        "exact",
        "a window that stays within its own image and its zeros sees the same values in the same"
        " order as before, and every output whose window reaches into the other image is computed"
        " again from its own one",
    ),
    Rule(
        "running-maximum",
        "exact",
        "each step keeps the larger of the step before and its own score, so the last step holds"
        " the maximum of the row, which no rounding depends on",
    ),
    Rule(
        "running-reduction",
        "exact",
        "each step combines the step before with its own operand, in the order and the type in"
        " which the plain pass does, and the first has what the operation starts from in the place"
        " of one before it, so the last step holds what the pass ends in",
    ),
    Rule(
        "made-together",
        "exact",
        "each running value is made by the very equation that made it before, from the same"
        " scores and from the step before it; the loops that made them one after the other only"
        " go round together now",
    ),
    Rule(
        "present-step",
        "exact",
        "each step of the running values reads the step before it and no other, and afterwards"
        " nothing reads any but the last, so state that every step overwrites goes through the"
        " same values, and it starts from what the first step had in the place of one before it",
    ),
    Rule(
        "rescaled-weighted-sum",
        "reassociated",
        "a weight relative to an old maximum times the exponential of old minus new maximum is"
        " the weight relative to the new one, so one factor brings both running sums up to date"
        " whenever the maximum grows, and as both shrink alike, their quotient after the last"
        " score is the sum of the normalised weights times their operands; the exponents are"
        " never positive, so no exponential overflows; while every score so far is minus infinity,"
        " old and new maximum are too, whose difference is not a number: there the factor, and the"
        " weight of such a score, count as zero; a row of nothing else ends as zero divided by"
        " zero, which is what it was before",
    ),
    Rule(
        "rescaled-running-sum",
        "reassociated",
        "a term relative to an old maximum times the exponential of old minus new maximum is the"
        " term relative to the new one, so one factor brings the whole running sum up to date"
        " whenever the maximum grows, and after the last score both are what the separate passes"
        " computed; the exponents are never positive, so no exponential overflows; while every"
        " score so far is minus infinity, old and new maximum are too, whose difference is not a"
        " number: there the old sum, and the term of such a score, count as zero, and whatever"
        " reads a row of nothing else still gets no number, as before",
    ),
    Rule(
        "rescaled-shifted-sum",
        "reassociated",
        "a term relative to an old maximum times the exponential of old minus new maximum is the"
        " term relative to the new one, so one factor brings the whole running sum up to date; a"
        " finite maximum is its own shift, so the last step is the old sum; a row of nothing but"
        " minus infinity has a sum of zero in both, since its terms count as zero and its shift is"
        " zero; where a score is plus infinity the copy gives the infinity that the old sum was",
    ),
    Rule(
        "distributive-law",
        "reassociated",
        "multiplication distributes over addition, so both sides are the same number; in floating"
        " point one of them rounds the sum and the other one the products",
    ),
    Rule(
        "power-by-definition",
        "exact",
        "a square is computed as the product of a value with itself, so both sides make the same"
        " multiplication",
    ),
    Rule(
        "doubling",
        "exact",
        "multiplying by two and adding a value to itself both move its exponent by one and round"
        " nothing",
    ),
    Rule(
        "power-law",
        "reassociated",
        "powers of one base multiply by adding exponents, those of one exponent by multiplying"
        " bases, and roots are powers; both sides are the same number and differ by the rounding of"
        " intermediate powers",
    ),
    Rule(
        "exponential-law",
        "reassociated",
        "the exponential of a sum is the product of the exponentials; both sides are the same"
        " number, and no exponential on either side leaves its type where the other does not",
    ),
    Rule(
        "logarithm-law",
        "reassociated",
        "for positive values the logarithm turns products into sums and powers into multiples; both"
        " sides are the same number up to rounding",
    ),
    Rule(
        "inverse-functions",
        "reassociated",
        "exponential and logarithm undo each other; both sides are the same number, apart from what"
        " the two roundings in between have moved it by",
    ),
    Rule(
        "factor-of-a-sum",
        "reassociated",
        "a factor that is the same in all terms of a sum may be applied to each of them or once to"
        " the sum; in floating point the products round differently",
    ),
    Rule(
        "binomial-law",
        "reassociated",
        "multiplying the two sums out gives exactly these squares and products, so both sides are"
        " the same number up to the rounding of the intermediate ones",
    ),
    Rule(
        "common-denominator",
        "reassociated",
        "a sum of fractions over one denominator is the fraction of their sum, so both sides are"
        " the same number; in floating point each division and each sum rounds on its own",
    ),
    Rule(
        "partial-fractions",
        "reassociated",
        "brought onto one denominator, the two fractions have a numerator in which everything but"
        " the constant cancels, so both sides are the same number; in floating point each division"
        " rounds on its own",
    ),
    Rule(
        "one-quotient",
        "reassociated",
        "a product of quotients is the quotient of the products, so both sides are the same number"
        " with one rounding less or more",
    ),
    Rule(
        "cancelled-factor",
        "reassociated",
        "a fraction does not change where its numerator and its denominator are multiplied by one"
        " number that is not zero, apart from the rounding of the two products",
    ),
    Rule(
        "cancelled-term",
        "reassociated",
        "a number and its negative add up to zero, so both sides are the same number; what the sum"
        " in between rounds away is within its own last digits",
    ),
    Rule(
        "factor-of-branches",
        "exact",
        "whichever branch is taken, its value is multiplied by the same factor, before the choice"
        " or after it",
    ),
    Rule(
        "monotone-rounding",
        "exact",
        "multiplying or dividing by a positive number keeps the order of values and so does"
        " rounding, so the largest and the smallest result are those of the largest and the"
        " smallest value, to the last bit",
    ),
    Rule(
        "unit-factor",
        "exact",
        "multiplying or dividing by one changes no bit",
    ),
)
RULES: Final[dict[str, Rule]] = {rule.name: rule for rule in _RULES}


class RuleTaken(ValueError):
    """A plug-in names an argument as one that is there already, but argues otherwise."""


def add(*rules: Rule) -> None:
    """Take the arguments of a plug-in along. Raises RuleTaken, and then adds none of them."""
    for rule in rules:
        if RULES.get(rule.name, rule) != rule:
            raise RuleTaken(f"there is another soundness rule {rule.name!r}")
    RULES.update({rule.name: rule for rule in rules})


def numerics_of(explanation: Explanation) -> Numerics:
    """What the named rule does to the values. Raises KeyError for an unknown rule."""
    return RULES[explanation.soundness_rule].numerics
