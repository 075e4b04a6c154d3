"""The demo with a real node: models come to serve, answer, and are shown with all that was made for them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from testbed.cluster.cache import cache_directory
from testbed.cluster.requirements import require_node_programs
from testbed.demo.answers import Answers, through_cluster_ip
from testbed.demo.closing import look_around, show_objects
from testbed.demo.errors import DemoError
from testbed.demo.models import serves
from testbed.demo.watching import NAMESPACE, Watch, apply
from testbed.operator.log_text import log_lines
from testbed.session import running_session

if TYPE_CHECKING:
    from pathlib import Path

    from testbed.cluster import Progress
    from testbed.demo.screen import Screen
    from testbed.operator.release import OperatorRelease

DEADLINE_SECONDS = 600.0
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
            screen.title(
                f"{count} model{'s' if count != 1 else ''}, from {manifests_name(manifests)} to served answers"
            )
            watch = Watch(cluster, screen, DEADLINE_SECONDS, check=lambda: check_operator(operator))
            models = watch.until(serves)
            Answers(cluster, NAMESPACE, through_cluster_ip(cluster, namespace=NAMESPACE)).show(models, screen=screen)
            show_objects(cluster, models, screen=screen)
            look_around(cluster, keep=keep, screen=screen)
        except DemoError as error:
            raise DemoError(f"{error}\n{last_words(operator)}") from error
        if keep:
            threading.Event().wait()


def check_operator(operator: OperatorRelease) -> None:
    """Raise if the operator does not run.

    Raises:
        DemoError: with what keeps its pod from running.
    """
    if trouble := operator.trouble():
        raise DemoError(f"the operator does not run: {trouble}")


def last_words(operator: OperatorRelease) -> str:
    """Keep the log of the operator's pod, which goes with its cluster, and return its end."""
    kept, log = cache_directory() / "failed-demo.log", operator.log
    kept.write_text(log, encoding="utf-8")
    return f"the end of the operator's log, kept in {kept}:\n{log_lines(log)}"


def manifests_name(manifests: Path) -> str:
    """Name the manifests as a title does."""
    return f"{manifests.parent.name}/{manifests.name}"
