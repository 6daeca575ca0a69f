"""Math-level strategies: they change the algebra of a computation."""
