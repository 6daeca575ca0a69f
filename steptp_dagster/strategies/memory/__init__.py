"""Memory-level strategies: they change where values are kept."""
