from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from testbed.operator.build_secrets import secret_arguments

if TYPE_CHECKING:
    from pathlib import Path


def handed_over(directory: Path) -> dict[str, str]:
    lines = (directory / "environment").read_text(encoding="utf-8").splitlines()
    return {name: shlex.split(value)[0] for name, _, value in (line.partition("=") for line in lines)}


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_TEAM_PASSWORD", "https_proxy"])
def test_how_the_package_index_is_reached_gets_into_the_build(tmp_path: Path, name: str) -> None:
    secret_arguments({name: "https://user:it's@index.example/simple"}, tmp_path)
    assert handed_over(tmp_path)[name] == "https://user:it's@index.example/simple"


@pytest.mark.parametrize("name", ["HOME", "PATH", "PIP_FIND_LINKS", "AWS_SECRET_ACCESS_KEY", "UV_CACHE_DIR"])
def test_nothing_else_does(tmp_path: Path, name: str) -> None:
    secret_arguments({name: "/here"}, tmp_path)
    assert name not in handed_over(tmp_path)


def test_the_machines_certificates_are_a_secret_that_the_build_finds_by_its_place(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.touch()
    arguments = secret_arguments({"SSL_CERT_FILE": str(bundle)}, tmp_path)
    assert f"--secret=id=ca-certificates,src={bundle}" in arguments
    assert handed_over(tmp_path)["SSL_CERT_FILE"] == "/run/secrets/ca-certificates"


def test_a_bundle_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.touch()
    arguments = secret_arguments({"SSL_CERT_FILE": str(tmp_path / "gone"), "PIP_CERT": str(bundle)}, tmp_path)
    assert f"--secret=id=ca-certificates,src={bundle}" in arguments


def test_no_value_is_on_the_command_line(tmp_path: Path) -> None:
    arguments = secret_arguments({"PIP_INDEX_URL": "https://user:word@index.example/simple"}, tmp_path)
    assert not any("word" in argument for argument in arguments)
