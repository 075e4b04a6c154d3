"""The operator's own image, built from its Dockerfile: what is in it, what isn't, and that it runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testbed.cluster.cache import cache_directory
from testbed.operator.image import OperatorImage, build_operator_image
from testbed.uv import find_uv

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="an image's root file system is built and entered by root alone"),
    # The first build takes a minute or two; `make test` has it built before.
    pytest.mark.timeout(600),
]

ROOT = Path(__file__).parents[2]
MOST_BYTES_BEYOND_BASE = 180_000_000
USER = 65532
IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import specdec_operator
names = [module.name for module in pkgutil.walk_packages(specdec_operator.__path__, "specdec_operator.")]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
print(len(names))
"""


@dataclass(frozen=True)
class UnpackedImage:
    """An image's configuration, the bytes of its layers, bottom first, and its root file system."""

    config: dict[str, Any]
    layer_bytes: tuple[int, ...]
    root: Path

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.config["config"]["Labels"])

    @property
    def sbom(self) -> dict[str, Any]:
        document = self.root / self.labels["dev.specdec.sbom"].lstrip("/")
        return dict(json.loads(document.read_text(encoding="utf-8")))

    def paths(self) -> Iterator[str]:
        for folder, _, files in os.walk(self.root):
            yield from (f"/{(Path(folder) / file).relative_to(self.root)}" for file in files)

    def run(self, *arguments: str, user: int = USER, group: int = USER) -> subprocess.CompletedProcess[str]:
        """Run the image's entrypoint's program, with its environment and as its user or another one."""
        variables = self.config["config"]["Env"]
        isolated = ("setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
        become = ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs")
        argv = (*isolated, f"--root={self.root}", "--mount-proc", *become, "env", "-i", *variables, *arguments)
        return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def image() -> OperatorImage:
    return build_operator_image(cache=cache_directory(), progress=print)


@pytest.fixture(scope="module")
def unpacked(image: OperatorImage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnpackedImage]:
    directory = tmp_path_factory.mktemp("operator-image")
    layout, root = directory / "layout", directory / "root"
    root.mkdir()
    layout.mkdir()
    subprocess.run(["/usr/bin/tar", "-C", str(layout), "-xf", str(image.archive)], check=True)
    manifest = blob(layout, image.digest)
    layers = [layout / "blobs" / "sha256" / item["digest"].removeprefix("sha256:") for item in manifest["layers"]]
    for layer in layers:
        apply(layer, root)
    config = blob(layout, manifest["config"]["digest"])
    unpacked = UnpackedImage(config, tuple(layer.stat().st_size for layer in layers), root)
    shutil.rmtree(layout)
    # As a pod's read-only root file system: what everybody may write to otherwise, nobody may.
    for folder in (path for path in root.rglob("*") if path.is_dir() and not path.is_symlink()):
        if folder.stat().st_mode & 0o002:
            folder.chmod(0o555)
    yield unpacked
    shutil.rmtree(directory)


def blob(layout: Path, digest: str) -> dict[str, Any]:
    return dict(json.loads((layout / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()))


def apply(layer: Path, root: Path) -> None:
    subprocess.run(["/usr/bin/tar", "-C", str(root), "-xf", str(layer), "--exclude=.wh.*"], check=True)
    with tarfile.open(layer) as tar:
        gone = [Path(name) for name in tar.getnames() if Path(name).name.startswith(".wh.")]
    for marker in gone:
        removed = root / marker.parent / marker.name.removeprefix(".wh.")
        if removed.is_dir() and not removed.is_symlink():
            shutil.rmtree(removed)
        else:
            removed.unlink(missing_ok=True)


def locked_distributions(python: str) -> dict[str, str]:
    """The run-time distributions of uv.lock for a Python on Linux, by name."""
    uv = find_uv()
    assert uv is not None
    command = [uv, "export", "--frozen", "--quiet", "--no-dev", "--no-emit-project", "--no-hashes", "--no-annotate"]
    lines = subprocess.run([*command, "--no-header"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    requirements = [Requirement(line) for line in lines.splitlines() if line]
    environment = {"python_full_version": f"{python}.0", "python_version": python, "sys_platform": "linux"}
    return {
        requirement.name: str(requirement.specifier).removeprefix("==")
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate(environment)
    }


def python_of(unpacked: UnpackedImage) -> str:
    (folder,) = (unpacked.root / "opt" / "specdec" / "lib").glob("python3.*")
    return folder.name.removeprefix("python")


def test_the_image_is_under_180_megabytes_beyond_its_base(unpacked: UnpackedImage) -> None:
    _, *own = unpacked.layer_bytes
    assert sum(own) < MOST_BYTES_BEYOND_BASE


def test_an_edit_of_the_operator_changes_its_last_layer_alone_which_is_small(unpacked: UnpackedImage) -> None:
    assert unpacked.layer_bytes[-1] < 10_000_000


def test_the_image_has_no_compiler_and_nothing_that_only_a_compiler_reads(unpacked: UnpackedImage) -> None:
    compilers = re.compile(r"/(cc|gcc|g\+\+|c\+\+|clang|cpp|ld|as|make|rustc|cargo)(-[\d.]+)?$")
    sources = re.compile(r"^/opt/specdec/.*\.(a|c|h|pxd|pyx)$")
    assert [path for path in unpacked.paths() if compilers.search(path) or sources.match(path)] == []


def test_the_image_has_no_tests(unpacked: UnpackedImage) -> None:
    assert [path for path in unpacked.paths() if path.startswith("/opt/specdec/") and "/tests/" in path] == []


def test_the_image_has_nothing_that_installs_python_packages(unpacked: UnpackedImage) -> None:
    installers = re.compile(r"/(pip|setuptools|wheel|ensurepip|uv|hatchling|cyclonedx[\w.]*)([-_][\d.]+[^/]*)?(/|$)")
    assert [path for path in unpacked.paths() if installers.search(path) or path.endswith(".whl")] == []


def test_the_image_runs_as_a_user_that_is_not_root(unpacked: UnpackedImage) -> None:
    assert unpacked.config["config"]["User"] == f"{USER}:{USER}"


def test_the_labels_say_what_the_image_is(unpacked: UnpackedImage) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    told = {name.removeprefix("org.opencontainers.image."): value for name, value in unpacked.labels.items()}
    assert told["title"] == "specdec-operator"
    assert (told["version"], told["licenses"]) == (version, "Apache-2.0")
    assert {"description", "revision", "created", "source", "documentation"} <= set(told)


def test_nothing_of_this_machine_is_in_the_configuration(unpacked: UnpackedImage) -> None:
    variables = {variable.partition("=")[0] for variable in unpacked.config["config"]["Env"]}
    assert variables == {"PATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def test_the_tag_follows_the_content(image: OperatorImage) -> None:
    assert re.fullmatch(r"specdec\.dev/testbed/specdec-operator:[\d.]+-[0-9a-f]{16}", image.reference)


def test_the_sbom_lists_every_locked_distribution_and_nothing_else(unpacked: UnpackedImage) -> None:
    listed = {canonicalize_name(component["name"]): component["version"] for component in unpacked.sbom["components"]}
    assert listed == locked_distributions(python_of(unpacked))


def test_the_sbom_is_of_the_operator(unpacked: UnpackedImage) -> None:
    sbom = unpacked.sbom
    assert (sbom["bomFormat"], sbom["metadata"]["component"]["name"]) == ("CycloneDX", "specdec-operator")


def test_the_entrypoint_starts_without_writing_a_file(unpacked: UnpackedImage) -> None:
    ended = unpacked.run(*unpacked.config["config"]["Entrypoint"], "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "--config" in ended.stdout


def test_a_user_that_a_platform_makes_up_may_run_it(unpacked: UnpackedImage) -> None:
    ended = unpacked.run(*unpacked.config["config"]["Entrypoint"], "--config=/nowhere", user=1_000_680_000, group=0)
    assert ended.returncode == 1
    assert "/nowhere" in json.loads(ended.stderr)["message"]


def test_every_module_of_the_operator_can_be_imported(unpacked: UnpackedImage) -> None:
    ended = unpacked.run("python", "-W", "error::ImportWarning", "-c", IMPORT_EVERYTHING)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert int(ended.stdout) > 100


def test_the_command_line_is_there(unpacked: UnpackedImage) -> None:
    assert unpacked.run("specdec", "--help").returncode == 0
