from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def default(argument: str) -> str:
    found = re.search(rf'^ARG {argument}="?([^"\n]+)"?$', DOCKERFILE, re.MULTILINE)
    assert found is not None, argument
    return found[1]


def test_the_image_has_the_projects_version() -> None:
    assert default("VERSION") == PROJECT["project"]["version"]


def test_the_image_is_built_with_the_uv_of_the_checkout() -> None:
    bootstrap = re.search(r"^uv_version=(.+)$", (ROOT / "bootstrap").read_text(encoding="utf-8"), re.MULTILINE)
    assert bootstrap is not None
    assert default("UV_VERSION") == bootstrap[1]


def test_what_builds_the_wheel_is_what_the_project_asks_for() -> None:
    (backend,) = PROJECT["build-system"]["requires"]
    assert backend in PROJECT["dependency-groups"]["image"]


def test_the_default_base_is_pinned_by_version() -> None:
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+\.\d+-slim-\w+", default("BASE_IMAGE"))


def test_every_locked_distribution_has_wheels_for_the_default_base() -> None:
    python = default("BASE_IMAGE").split(":3.")[1].split(".")[0]
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for package in packages:
        by_name.setdefault(package["name"], []).append(package)
    missing = [
        (name, architecture)
        for name in runtime_names(by_name)
        for architecture in ("x86_64", "aarch64")
        if not any(fits(wheel, python, architecture) for package in by_name[name] for wheel in package["wheels"])
    ]
    assert missing == []


def runtime_names(by_name: dict[str, list[dict[str, Any]]]) -> set[str]:
    """The closure of the project's dependencies, without those that another platform alone has."""
    names: set[str] = set()
    waiting = [(PROJECT["project"]["name"], frozenset[str]())]
    while waiting:
        name, extras = waiting.pop()
        for package in by_name[name]:
            optional = package.get("optional-dependencies", {})
            wanted = [*package.get("dependencies", []), *(item for extra in extras for item in optional[extra])]
            for item in wanted:
                if item["name"] not in names and "win32" not in item.get("marker", ""):
                    names.add(item["name"])
                    waiting.append((item["name"], frozenset(item.get("extra", []))))
    return names


def fits(wheel: dict[str, str], python: str, architecture: str) -> bool:
    name = wheel["url"].rpartition("/")[2].removesuffix(".whl")
    tags, _, platforms = name.rpartition("-")
    abi_tags = tags.split("-")[-2:]
    on_python = abi_tags[0].endswith("py3") or f"cp3{python}" in abi_tags or "abi3" in abi_tags
    return on_python and (platforms == "any" or ("manylinux" in platforms and architecture in platforms))
