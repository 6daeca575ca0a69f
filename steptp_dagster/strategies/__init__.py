"""The strategies: one file each, by level; ``registry`` lists them, ``step`` takes a step."""
