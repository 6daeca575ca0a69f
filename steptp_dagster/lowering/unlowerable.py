"""Programs that cannot be lowered, though they may be valid."""


class Unlowerable(ValueError):
    """Lowering refused a program. ``reason`` is a kebab-case name."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
