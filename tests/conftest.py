"""Settings of all tests."""

from __future__ import annotations

import hypothesis


def pytest_configure() -> None:
    """Properties are not timed: how long an example takes says more of the machine than of the code."""
    hypothesis.settings.register_profile("untimed", deadline=None)
    hypothesis.settings.load_profile("untimed")
