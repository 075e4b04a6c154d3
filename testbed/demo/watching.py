"""Applying the models and watching them come to serve."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from testbed.demo.errors import DemoError
from testbed.demo.models import describe, is_stalled, row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from testbed.cluster import ClusterAccess
    from testbed.demo.screen import Screen

Json = dict[str, Any]
NAMESPACE = "default"
POLL_SECONDS = 1.0


@dataclass
class Watch:
    """The models of the demo while they come to serve.

    Attributes:
        cluster: where they are.
        screen: where they are shown.
        deadline_seconds: for all of them together.
        check: raises if the operator has ended.
        namespace: the models are in it.
    """

    cluster: ClusterAccess
    screen: Screen
    deadline_seconds: float
    check: Callable[[], None]
    namespace: str = NAMESPACE
    _started: float = field(default_factory=time.monotonic)
    _reached: dict[str, float] = field(default_factory=dict)

    def until(self, reached: Callable[[Json], bool]) -> Sequence[Json]:
        """Show the models until each has reached something; return them.

        Raises:
            DemoError: one of them can't reach it any more, or not in time.
        """
        while (models := self.look(reached)) is None:
            time.sleep(POLL_SECONDS)
        return models

    def look(self, reached: Callable[[Json], bool]) -> Sequence[Json] | None:
        """Show the models once; return them if each has reached something.

        Raises:
            DemoError: one of them can't reach it any more, or not in time.
        """
        self.check()
        models: list[Json] = self.cluster.client.get(_path(self.namespace))["items"]
        elapsed = time.monotonic() - self._started
        self._note(models, reached, elapsed)
        self.screen.show(
            [row(model, seconds=self._reached.get(model["metadata"]["name"], elapsed)) for model in models]
        )
        if len(self._reached) == len(models):
            return models
        if stalled := [model for model in models if is_stalled(model)]:
            raise DemoError("\n".join(["a model can't come to serve:", *map(describe, stalled)]))
        if elapsed > self.deadline_seconds:
            late = [describe(model) for model in models if not reached(model)]
            raise DemoError("\n".join([f"not there after {self.deadline_seconds:.0f} s:", *late]))
        return None

    def _note(self, models: Sequence[Json], reached: Callable[[Json], bool], elapsed: float) -> None:
        for model in models:
            name = model["metadata"]["name"]
            if not reached(model):
                self._reached.pop(name, None)
            else:
                self._reached.setdefault(name, elapsed)


def apply(cluster: ClusterAccess, manifests: Path, *, namespace: str = NAMESPACE) -> int:
    """Apply the manifests below a path; return how many models there are now.

    Raises:
        DemoError: there are none.
    """
    cluster.kubectl("apply", f"--namespace={namespace}", f"--filename={manifests}")
    if count := len(cluster.client.get(_path(namespace))["items"]):
        return count
    raise DemoError(f"{manifests} holds no SpeculativeModel")


def _path(namespace: str) -> str:
    return f"/apis/specdec.dev/v1alpha1/namespaces/{namespace}/speculativemodels"
