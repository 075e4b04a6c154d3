"""Label and annotation keys that are the operator's, so that a spec may not set them."""

from __future__ import annotations

from typing import Final

from specdec_operator.api.v1alpha1 import GROUP

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "app.kubernetes.io/component"


def is_owned(key: str) -> bool:
    """Whether a label's or annotation's key is the operator's."""
    prefix = key.partition("/")[0] if "/" in key else ""
    return key in (MANAGED_BY, COMPONENT) or prefix == GROUP or prefix.endswith(f".{GROUP}")
