"""Random nests that are valid by construction: one method per shape of nest."""

from steptp_dagster.leir.ast import Nest
from tests.support.random_accumulations import Accumulations
from tests.support.random_blocks import Blocks
from tests.support.random_elements import Elements


class Nests(Elements, Accumulations, Blocks):
    """Makes nests one after the other; what one writes, the next may read."""

    def any(self) -> list[Nest]:
        """A nest, or two, of some shape."""
        makers = (
            self.elementwise,
            self.elementwise,
            self.scratch,
            self.integers,
            self.mask,
            self.reduction,
            self.reduction,
            self.rows,
            self.recurrence,
            self.concatenation,
            self.again,
            self.exchange,
            self.block_sum,
            self.tiled_sum,
        )
        return self.rng.choice(makers)()
