"""What a user may come with next: another version of the chart, and manifests of their own."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import yaml

from testbed.operator.chart import CHART, CONFIGURATION, NAME, NAMESPACE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from specdec_operator.api.configuration import OperatorConfiguration

MARK = "A sentence of the next version."
VERSION = "0.2.0"


def next_chart(folder: Path) -> Path:
    """Write the chart as a next version may be: another number, other CRDs."""
    copy = folder / CHART.name
    shutil.copytree(CHART, copy)
    for path in (copy / "files" / "crds").iterdir():
        crd = yaml.load(path.read_text(), yaml.CSafeLoader)
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = MARK
        path.write_text(yaml.dump(crd, Dumper=yaml.CSafeDumper))
    about = yaml.safe_load((copy / "Chart.yaml").read_text())
    (copy / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": VERSION}))
    return copy


def overlay(folder: Path, *, image: str, configuration: OperatorConfiguration) -> Path:
    """Write a kustomization over the shipped one for all namespaces, with an image and settings of one's own."""
    folder.mkdir(parents=True)
    repository, _, tag = image.rpartition(":")
    content = {
        # kustomize takes no absolute paths.
        "resources": [os.path.relpath(ROOT / "manifests" / "cluster-wide", folder)],
        "images": [{"name": NAME, "newName": repository, "newTag": tag}],
        "configMapGenerator": [
            {"name": CONFIGURATION, "namespace": NAMESPACE, "behavior": "replace", "files": ["configuration.yaml"]}
        ],
    }
    settings = configuration.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True, mode="json")
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    (folder / "configuration.yaml").write_text(yaml.safe_dump(settings))
    return folder
