from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from testbed.operator.buildah import used_long_ago
from testbed.operator.image import operator_image_reference

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the image is made of."""
    for name in ("Dockerfile", ".dockerignore", "uv.lock", "LICENSE", "README.md"):
        (tmp_path / name).write_text(name)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "operator" / "package").mkdir(parents=True)
    (tmp_path / "operator" / "package" / "app.py").write_text("before")
    return tmp_path


def test_the_tag_begins_with_the_projects_version(checkout: Path) -> None:
    assert operator_image_reference(checkout).startswith("specdec.dev/testbed/specdec-operator:1.2.3-")


@pytest.mark.parametrize("name", ["Dockerfile", ".dockerignore", "uv.lock", "README.md", "operator/package/app.py"])
def test_whatever_gets_into_the_image_gives_it_another_name(checkout: Path, name: str) -> None:
    before = operator_image_reference(checkout)
    (checkout / name).write_text("after")
    assert operator_image_reference(checkout) != before


@pytest.mark.parametrize("name", ["tests/test_app.py", "operator/package/__pycache__/app.cpython-311.pyc"])
def test_what_does_not_leaves_the_name_alone(checkout: Path, name: str) -> None:
    before = operator_image_reference(checkout)
    (checkout / name).parent.mkdir()
    (checkout / name).write_text("after")
    assert operator_image_reference(checkout) == before


def test_a_renamed_module_gives_another_name(checkout: Path) -> None:
    before = operator_image_reference(checkout)
    (checkout / "operator" / "package" / "app.py").rename(checkout / "operator" / "package" / "main.py")
    assert operator_image_reference(checkout) != before


def test_what_was_used_last_is_kept(tmp_path: Path) -> None:
    for age, name in enumerate(("newest", "older", "oldest")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert [path.name for path in used_long_ago(tmp_path, "*", keep=1)] == ["older", "oldest"]
