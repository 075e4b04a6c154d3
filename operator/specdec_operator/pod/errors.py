"""The failures of the programs that run inside pods."""


class ProgramFailure(Exception):  # noqa: N818 - it carries a reason and a remedy; a program's outcome rather than a bug
    """A program can't do its work.

    Attributes:
        reason: a fixed CamelCase word.
        message: what is wrong, where, and what to do.
        terminal: True if another attempt can't mend it.
    """

    def __init__(self, reason: str, message: str, *, terminal: bool = True) -> None:
        # names of files and what files say may hold surrogates, which no API takes
        self.message = message.encode("utf-8", "backslashreplace").decode("utf-8")
        super().__init__(self.message)
        self.reason = reason
        self.terminal = terminal


class InvalidInput(ProgramFailure):
    """A program's input isn't what the program reads."""

    def __init__(self, message: str) -> None:
        super().__init__("InvalidInput", message)


class Interrupted(ProgramFailure):
    """The program was asked to stop before it was done."""

    def __init__(self) -> None:
        super().__init__("Interrupted", "the program was stopped by SIGTERM before it was done", terminal=False)
