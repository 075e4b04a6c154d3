"""What can go wrong with an operator under test."""

from __future__ import annotations

from testbed.cluster.errors import TestbedError


class OperatorError(TestbedError):
    """The operator ended or did not become ready; the message says where its log is."""
