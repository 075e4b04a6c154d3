"""Storage for a real node: a default class and volumes that wait for claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from testbed.cluster.api import ApiClient, Json

STORAGE_CLASS = "testbed"
CAPACITY = "100Gi"
ACCESS_MODES = {"rwo": "ReadWriteOnce", "rwx": "ReadWriteMany"}


def add_volumes(client: ApiClient, *, directory: Path, node: str, count: int) -> None:
    """Create the default storage class, and `count` volumes of each access mode below a folder.

    Every volume is a folder that anyone may write, as pods that don't run as root need.
    """
    client.create("/apis/storage.k8s.io/v1/storageclasses", storage_class())
    for name in volume_names(count):
        path = directory / name
        path.mkdir(parents=True)
        path.chmod(0o777)
        client.create("/api/v1/persistentvolumes", volume_object(name, path=path, node=node))


def volume_names(count: int) -> Sequence[str]:
    """Name the volumes, `<mode>-<number>`."""
    return [f"{mode}-{number}" for mode in ACCESS_MODES for number in range(count)]


def storage_class() -> Json:
    """Return the default class; its claims bind when a pod that uses them is scheduled."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Retain",
    }


def volume_object(name: str, *, path: Path, node: str) -> Json:
    """Return a local PersistentVolume on the node."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": [ACCESS_MODES[name.partition("-")[0]]],
            "capacity": {"storage": CAPACITY},
            "local": {"path": str(path)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": STORAGE_CLASS,
        },
    }
