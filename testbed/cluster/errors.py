"""What can go wrong in the testbed; each error says what to do about it."""

from __future__ import annotations


class TestbedError(Exception):
    """Root of the testbed's errors."""

    __test__ = False  # its name begins as a test class's would


class ToolchainError(TestbedError):
    """No Go that is new enough, and none could be fetched."""


class BuildError(TestbedError):
    """A program of the cluster could not be built."""


class ProgramError(TestbedError):
    """A program of the cluster ended by itself; the message carries the end of its log."""


class NotReadyError(TestbedError):
    """Something did not become ready before its deadline."""


class ApiError(TestbedError):
    """The API server refused a request, or could not be reached.

    Attributes:
        status: HTTP status code; 0 where no answer came.
    """

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class CommandError(TestbedError):
    """A command of the system or of the cluster ended with an error; the message carries its output."""


class ClusterNameError(TestbedError):
    """A cluster of this name is running."""


class RealNodeUnavailableError(TestbedError):
    """This machine can't carry a real node; the message says why, and what would help."""
