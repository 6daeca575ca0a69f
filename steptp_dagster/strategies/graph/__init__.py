"""Graph-level strategies: they change which nests exist."""
