"""Which of a strategy's sites are taken: a policy apart from the strategies.

A survey lists every legal site, in hundreds for a loop strategy on a long program, most of them
alike. The policy walks from one kind of choice to the next: another nest, another loop, another
factor, another form. Within what is equally new, a rank decides (a hash of the seed), so that no
factor or nest is favoured by where it stands in the text.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from steptp_dagster.strategies.base import Parameter, Site

#: One aspect of a site: the name of a parameter (or ``""`` for the place) and its value.
Feature = tuple[str, Parameter]


def features(site: Site) -> tuple[Feature, ...]:
    """What a site chooses: the top-level nest, then each parameter.

    >>> features(Site.of("loop_split", (2, 0), loop="a", factor=4))
    (('', 2), ('factor', 4), ('loop', 'a'))
    """
    nest = site.path[0] if site.path else 0
    return (("", nest), *site.parameters)


def spread(sites: Sequence[Site], rank: Callable[[Site], str]) -> Iterator[Site]:
    """All sites, each next one sharing as little as possible with those before it.

    The next site is the one whose features were taken least often so far (their counts summed);
    among equals the one of the lowest ``rank``. Lazy: a cap of ``k`` costs ``k`` passes over the
    sites. The order depends on the set of sites, not on their order in the survey.
    """
    left = sorted(((rank(site), features(site), site) for site in sites), key=lambda x: x[0])
    seen: Counter[Feature] = Counter()
    while left:
        best = min(range(len(left)), key=lambda i: sum(seen[f] for f in left[i][1]))
        _, own, site = left.pop(best)
        seen.update(own)
        yield site
