"""Kubeconfig files."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Impersonation:
    """Who the bearer of the token acts as.

    Attributes:
        user: user name.
        groups: groups of the user.
    """

    user: str
    groups: Sequence[str] = ()


@dataclass(frozen=True)
class Endpoint:
    """How to reach an API server.

    Attributes:
        cluster: name shown for it.
        server: its URL.
        ca_file: PEM file of the authority that signed its certificate.
    """

    cluster: str
    server: str
    ca_file: Path


def write_kubeconfig(path: Path, *, endpoint: Endpoint, token: str, impersonation: Impersonation | None = None) -> Path:
    """Write a kubeconfig that stands alone (the authority inside it), readable by its owner only."""
    authority = base64.b64encode(endpoint.ca_file.read_bytes()).decode()
    user: dict[str, Any] = {"token": token}
    if impersonation is not None:
        user |= {"as": impersonation.user, "as-groups": list(impersonation.groups)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": endpoint.cluster,
        "clusters": [
            {
                "name": endpoint.cluster,
                "cluster": {"server": endpoint.server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": endpoint.cluster, "context": {"cluster": endpoint.cluster, "user": "user"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    # JSON is YAML too.
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path
