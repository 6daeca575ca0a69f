"""Operator-level strategies: they change the loops of one nest."""
