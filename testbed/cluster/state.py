"""What a cluster leaves on disk about itself, so that another process can sweep after it.

The record is written before anything of the cluster exists, and names all that can ever come to exist.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.cluster.errors import TestbedError
from testbed.cluster.processes import ProcessIdentity

STATE_FILE = "state.json"


@dataclass(frozen=True)
class NodeRecord:
    """What a real node makes in the system, outside the cluster's directory and its own namespaces.

    Attributes:
        link: name of the host's network interface that leads to it.
        cgroup: name of the control group that holds its pods.
    """

    link: str
    cgroup: str

    @classmethod
    def of(cls, directory: Path) -> NodeRecord:
        """Name them after the cluster's directory, which no two clusters share."""
        digest = hashlib.sha256(str(directory).encode()).hexdigest()[:8]
        return cls(link=f"specdec{digest[:7]}", cgroup=f"specdec-{digest}")


@dataclass(frozen=True)
class ClusterRecord:
    """A cluster, as it is known on disk.

    Attributes:
        name: name of the cluster.
        directory: its folder.
        owner: the process that started it and will stop it.
        node: its real node, if it may have one.
    """

    name: str
    directory: Path
    owner: ProcessIdentity
    node: NodeRecord | None = None

    def write(self) -> None:
        """Write the record into the cluster's directory, whole or not at all."""
        content = asdict(self) | {"directory": str(self.directory)}
        path = self.directory / STATE_FILE
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(content, indent=2), encoding="utf-8")
        partial.replace(path)

    @classmethod
    def read(cls, directory: Path) -> ClusterRecord | None:
        """Read a directory's record; None if it has none.

        Raises:
            TestbedError: there is a record that can't be read.
        """
        path = directory / STATE_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                name=content["name"],
                directory=Path(content["directory"]),
                owner=ProcessIdentity(**content["owner"]),
                node=NodeRecord(**content["node"]) if content["node"] else None,
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise TestbedError(f"{path} can't be read ({error}); look into it, then delete it") from error


def this_process() -> ProcessIdentity:
    """Identify the calling process."""
    identity = ProcessIdentity.of(os.getpid())
    if identity is None:
        raise TestbedError("the testbed needs Linux with /proc")
    return identity
