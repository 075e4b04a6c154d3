from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from testbed.cluster.kubeconfig import Endpoint, Impersonation, write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def endpoint(tmp_path: Path) -> Endpoint:
    authority = tmp_path / "ca.crt"
    authority.write_text("an authority")
    return Endpoint(cluster="c", server="https://127.0.0.1:1", ca_file=authority)


def test_only_its_owner_may_read_it(tmp_path: Path, endpoint: Endpoint) -> None:
    path = write_kubeconfig(tmp_path / "k" / "config", endpoint=endpoint, token="t")
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_stands_alone(tmp_path: Path, endpoint: Endpoint) -> None:
    path = write_kubeconfig(tmp_path / "config", endpoint=endpoint, token="t")
    cluster = json.loads(path.read_text())["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"an authority"


def test_it_acts_as_another_user_when_asked_to(tmp_path: Path, endpoint: Endpoint) -> None:
    jane = Impersonation(user="jane", groups=["developers"])
    path = write_kubeconfig(tmp_path / "config", endpoint=endpoint, token="t", impersonation=jane)
    user = json.loads(path.read_text())["users"][0]["user"]
    assert (user["as"], user["as-groups"]) == ("jane", ["developers"])
