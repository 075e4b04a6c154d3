"""What the demo shows last: the objects, and how to look around."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from testbed.demo.objects import Objects
from testbed.demo.watching import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testbed.cluster import ClusterAccess
    from testbed.demo.models import Json
    from testbed.demo.screen import Screen


def show_objects(cluster: ClusterAccess, models: Sequence[Json], *, screen: Screen, namespace: str = NAMESPACE) -> None:
    """Show what the operator made of each model, as trees."""
    screen.title("What the operator made")
    objects = Objects.read(cluster.client, namespace=namespace)
    for number, model in enumerate(models):
        if number:
            screen.say()
        for line in objects.tree(model):
            screen.wrapped(f"  {line}", indent="  │    ")


def look_around(cluster: ClusterAccess, *, keep: bool, screen: Screen) -> None:
    """Say how to look at the cluster, if it stays."""
    if not keep:
        screen.title("Done. `make demo KEEP=1` leaves the cluster running, for kubectl.")
        return
    screen.title("The cluster stays until Ctrl-C. To look around, in another terminal:")
    kubectl = cluster.kubectl_program
    screen.say(f"  export KUBECONFIG={cluster.kubeconfig}")
    screen.say(f"  {kubectl if shutil.which('kubectl') is None else 'kubectl'} get specmodel -o wide")
