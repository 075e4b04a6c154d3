"""What can go wrong in the demo."""

from __future__ import annotations

from testbed.cluster.errors import TestbedError


class DemoError(TestbedError):
    """A model did not come to serve or to answer; the message carries what is known about it."""
