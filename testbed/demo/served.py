"""The demo with a real node: models come to serve, answer, and are shown with all that was made for them."""

from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING

from testbed.cluster.cache import cache_directory
from testbed.cluster.requirements import require_node_programs
from testbed.demo.closing import look_around, show_objects
from testbed.demo.errors import DemoError
from testbed.demo.models import serves
from testbed.demo.objects import Objects
from testbed.demo.prompt import Answer, ask, logged_counts
from testbed.demo.watching import NAMESPACE, Watch, apply, log_lines
from testbed.session import running_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from testbed.cluster import Cluster, Progress
    from testbed.demo.models import Json
    from testbed.demo.screen import Screen
    from testbed.operator import OperatorProcess

DEADLINE_SECONDS = 600.0
PROMPT = "What is speculative decoding?"
SIMULATOR_NOTE = (
    "The serving image is a simulator: a real Triton server and real MPI ranks around tiny models on the CPU. "
    "No GPU is used; GPUs are only declared."
)


def serve(manifests: Path, *, keep: bool, screen: Screen, progress: Progress) -> None:
    """Take the models in the manifests to served answers.

    Raises:
        RealNodeUnavailableError: this machine can't carry a real node.
        TestbedError: a step failed.
    """
    require_node_programs(progress)
    screen.wrapped(SIMULATOR_NOTE, indent="")
    with running_session(progress=progress) as session:
        cluster, operator = session.cluster, session.operator
        try:
            count = apply(cluster, manifests)
            screen.title(f"{count} models, from {_name(manifests)} to served answers")
            watch = Watch(cluster, screen, DEADLINE_SECONDS, check=lambda: _check(operator))
            models = watch.until(serves)
            _show_answers(cluster, models, screen=screen)
            show_objects(cluster, models, screen=screen)
            look_around(cluster, keep=keep, screen=screen)
        except DemoError as error:
            raise DemoError(f"{error}\n{_last_words(operator)}") from error
        if keep:
            threading.Event().wait()


def _show_answers(cluster: Cluster, models: Sequence[Json], *, screen: Screen) -> None:
    screen.title("One prompt through each Service")
    screen.say(f"  prompt: {PROMPT}")
    for model in models:
        name = model["metadata"]["name"]
        objects = Objects.read(cluster.client, namespace=NAMESPACE)
        pod = objects.serving_pods(name)[0]["metadata"]["name"]
        before = len(_counts(cluster, pod, model))
        answer = ask(objects.service_address(name), model["status"], PROMPT)
        if not answer.text:
            raise DemoError(f"{answer.url} answered without text; see its pod's log: {pod}")
        screen.say()
        screen.say(f"  {name}: {answer.url}")
        screen.wrapped(f"    answer:     {answer.text}", indent=" " * 16)
        if "draft" in model["spec"]:
            counts = _counts(cluster, pod, model)[before:]
            screen.wrapped(f"    acceptance: {acceptance(answer, counts)}", indent=" " * 16)


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


def _counts(cluster: Cluster, pod: str, model: Json) -> Sequence[tuple[int, int]]:
    log = cluster.kubectl("logs", f"--namespace={NAMESPACE}", pod, "--tail=-1")
    return logged_counts(log, model=model["status"]["endpoint"]["modelName"])


def _check(operator: OperatorProcess) -> None:
    if operator.exit_code is not None:
        raise DemoError(f"the operator ended with code {operator.exit_code}")


def _last_words(operator: OperatorProcess) -> str:
    """Keep the operator's log, which goes with its cluster, and return its end."""
    kept = cache_directory() / "failed-demo.log"
    shutil.copyfile(operator.log, kept)
    tail = log_lines(kept.read_text(encoding="utf-8", errors="replace"))
    return f"the end of the operator's log, kept in {kept}:\n{tail}"


def _name(manifests: Path) -> str:
    return f"{manifests.parent.name}/{manifests.name}"
