"""The command line: one module per family of commands; ``main`` has the group."""
