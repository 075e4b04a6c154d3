"""A cluster that the user already has; all goes through kubectl, which knows every kind of credentials."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.cluster.binaries import Builder
from testbed.cluster.cache import cache_directory
from testbed.cluster.commands import SHORT_LIVED
from testbed.cluster.errors import CommandError
from testbed.cluster.tools import CONTROL_PLANE

if TYPE_CHECKING:
    from testbed.cluster.access import ObjectReader
    from testbed.cluster.progress import Progress

KUBECTL = "kubectl"
TOKEN_DURATION = "24h"  # noqa: S105 - for how long a token is valid


@dataclass(frozen=True)
class ExistingCluster:
    """A cluster that somebody else started, and nobody here stops.

    Attributes:
        kubeconfig: the administrator's; its current context is used.
        host_address: the address of this machine at which the cluster's pods reach it.
        directory: a folder of this use of it, for logs and the operator's kubeconfig.
        kubectl_program: the kubectl that is used.
        reader: of its objects; a kubectl for each by default.
    """

    kubeconfig: Path
    host_address: str
    directory: Path
    kubectl_program: Path
    reader: ObjectReader | None = None

    @property
    def client(self) -> ObjectReader:
        """Requests to the API server as the administrator."""
        return self.reader or KubectlReader(self)

    def kubectl_command(self, *arguments: str) -> list[str]:
        """Return the command line of a kubectl command as the administrator."""
        return [str(self.kubectl_program), f"--kubeconfig={self.kubeconfig}", *arguments]

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as the administrator and return what it prints.

        Raises:
            CommandError: with its error output.
        """
        argv, environment = self.kubectl_command(*arguments), os.environ | SHORT_LIVED
        finished = subprocess.run(argv, input=stdin or "", capture_output=True, text=True, check=False, env=environment)
        if finished.returncode != 0:
            raise CommandError(f"kubectl {' '.join(arguments)}: {finished.stderr.strip()}")
        return finished.stdout

    def kubeconfig_for_service_account(self, *, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a day's token of a service account, readable by its owner only.

        Raises:
            CommandError: there is no such service account.
        """
        token = self.kubectl("create", "token", name, f"--namespace={namespace}", f"--duration={TOKEN_DURATION}")
        shown = json.loads(self.kubectl("config", "view", "--minify", "--flatten", "--raw", "--output=json"))
        path = self.directory / f"serviceaccount-{namespace}-{name}.yaml"
        path.touch(mode=0o600)
        # JSON is YAML too.
        path.write_text(json.dumps(with_token(shown, token.strip())), encoding="utf-8")
        return path


@dataclass(frozen=True)
class KubectlReader:
    """Reads objects of a cluster as its administrator."""

    cluster: ExistingCluster

    def get(self, path: str) -> dict[str, Any]:
        """Return the object, or the list, at a path of the API server.

        Raises:
            CommandError: with kubectl's error output.
        """
        answer: dict[str, Any] = json.loads(self.cluster.kubectl("get", f"--raw={path}"))
        return answer


def with_token(kubeconfig: dict[str, Any], token: str) -> dict[str, Any]:
    """Return a kubeconfig of one context with the bearer of a token in its user's place, and no other credentials."""
    (context,) = kubeconfig["contexts"]
    named = {"name": context["name"], "context": {"cluster": context["context"]["cluster"], "user": "bearer"}}
    return {**kubeconfig, "contexts": [named], "users": [{"name": "bearer", "user": {"token": token}}]}


def find_kubectl(progress: Progress) -> Path:
    """Return the kubectl on the PATH; else the testbed's own, built if it is missing.

    Raises:
        BuildError: it could not be built.
        ToolchainError: it must be built, and there is no Go.
    """
    if found := shutil.which(KUBECTL):
        return Path(found)
    tools = [tool for tool in CONTROL_PLANE if tool.name == KUBECTL]
    return Builder(cache=cache_directory(), environment=os.environ, progress=progress).ensure(tools)[KUBECTL]
