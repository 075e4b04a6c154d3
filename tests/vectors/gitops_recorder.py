"""A pytest plugin that adds states to gitops_states.yaml: what the API server answered while tests ran.

python -m pytest -p tests.vectors.gitops_recorder tests/integration/test_operator_*.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from specdec_operator.cluster.http import HttpKubernetesApi
from tests.vectors.gitops import State, cut, signature, states, write

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from specdec_operator.cluster.resources import ResourceType

KINDS = ("ModelArtifact", "SpeculativeModel")
ANSWERING = ("apply", "apply_status", "create", "get", "patch_merge")


class Recorder:
    """Keeps each state that an answer held once."""

    def __init__(self) -> None:
        self._states = {signature(state.document): state for state in states()}

    def look(self, answer: dict[str, Any]) -> None:
        """Keep an answer's state if it is a new one."""
        if answer.get("kind") in KINDS and "status" in answer:
            document = cut(answer)
            self._states.setdefault(signature(document), State(document, "?", "?", "?"))

    def save(self) -> None:
        """Write what is known."""
        write(list(self._states.values()))


@pytest.fixture(scope="module", autouse=True)
def _recorded(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    request.config.stash[_RECORDER].save()


_RECORDER = pytest.StashKey[Recorder]()


def pytest_configure(config: pytest.Config) -> None:
    """Look at every answer from now on; the process ends with the tests."""
    recorder = config.stash[_RECORDER] = Recorder()
    for name in ANSWERING:
        setattr(HttpKubernetesApi, name, _observed(getattr(HttpKubernetesApi, name), recorder))


def _observed(method: Callable[..., Coroutine[Any, Any, dict[str, Any]]], recorder: Recorder) -> object:
    async def call(api: HttpKubernetesApi, resource: ResourceType, *arguments: Any, **named: Any) -> dict[str, Any]:
        answer = await method(api, resource, *arguments, **named)
        recorder.look(answer)
        return answer

    return call
