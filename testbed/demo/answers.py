"""One prompt through each model's Service, and what came back."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.demo.errors import DemoError
from testbed.demo.objects import Objects
from testbed.demo.prompt import HTTP_PORT, Answer, ask, logged_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from testbed.cluster import ClusterAccess
    from testbed.demo.models import Json
    from testbed.demo.screen import Screen

    Route = Callable[[Json], AbstractContextManager[tuple[str, int]]]
    """From a model to an address and a port at which its Service's HTTP is reached while the context is open."""

PROMPT = "What is speculative decoding?"


@dataclass(frozen=True)
class Answers:
    """Asks the models of a namespace.

    Attributes:
        cluster: where they are.
        namespace: theirs.
        route: how a Service is reached.
    """

    cluster: ClusterAccess
    namespace: str
    route: Route

    def show(self, models: Sequence[Json], *, screen: Screen) -> None:
        """Ask each of them, and show what it answers.

        Raises:
            DemoError: one did not answer.
        """
        screen.title("One prompt through each Service")
        screen.say(f"  prompt: {PROMPT}")
        for model in models:
            self._show_one(model, screen=screen)

    def _show_one(self, model: Json, *, screen: Screen) -> None:
        name = model["metadata"]["name"]
        pod = Objects.read(self.cluster.client, namespace=self.namespace).serving_pods(name)[0]["metadata"]["name"]
        before = len(self._counts(pod, model))
        with self.route(model) as (address, port):
            answer = ask(address, model["status"], PROMPT, port=port)
        if not answer.text:
            raise DemoError(f"{answer.url} answered without text; see its pod's log: {pod}")
        screen.say()
        screen.say(f"  {name}: {answer.url}")
        screen.wrapped(f"    answer:     {answer.text}", indent=" " * 16)
        if "draft" in model["spec"]:
            counts = self._counts(pod, model)[before:]
            screen.wrapped(f"    acceptance: {acceptance(answer, counts)}", indent=" " * 16)

    def _counts(self, pod: str, model: Json) -> Sequence[tuple[int, int]]:
        log = self.cluster.kubectl("logs", f"--namespace={self.namespace}", pod, "--tail=-1")
        return logged_counts(log, model=model["status"]["endpoint"]["modelName"])


def acceptance(answer: Answer, counts: Sequence[tuple[int, int]]) -> str:
    """Say how many drafted tokens the target accepted: as the server reports it, and as the simulator counted."""
    reported = (
        f"{answer.accepted} of {answer.drafted} drafted tokens"
        if answer.drafted
        else "unknown: this release reports none"
    )
    if not counts:
        return reported
    drafted, accepted = counts[0]
    return f"{reported} (the simulator's log: {accepted} of {drafted} drafted tokens)"


def through_cluster_ip(cluster: ClusterAccess, *, namespace: str) -> Route:
    """Return the way through a Service's own address, where this machine reaches it."""

    @contextmanager
    def route(model: Json) -> Iterator[tuple[str, int]]:
        objects = Objects.read(cluster.client, namespace=namespace)
        yield objects.service_address(model["metadata"]["name"]), HTTP_PORT

    return route
