"""What an account may do, held against what the operator needs, and what is missing in words. Pure.

The API server tells each account its rules (SelfSubjectRulesReview); a permission is one verb on one resource.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from specdec_operator.cluster.resources import LEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from specdec_operator.cluster.api import JsonObject
    from specdec_operator.cluster.rights import Right

_NAMED_NAMESPACES = 3


@dataclass(frozen=True, kw_only=True, order=True)
class Permission:
    """One verb on one resource type, in one namespace or in all.

    Attributes:
        group: API group; empty for the core group.
        subresource: such as ``status``; empty for the object itself.
        namespace: where; empty for all namespaces.
        name: of the only object that is meant; empty for any.
        optional: Whether the operator does its work without it, and says less.
    """

    namespace: str = ""
    group: str = ""
    resource: str
    subresource: str = ""
    name: str = ""
    verb: str
    optional: bool = False

    @property
    def qualified_name(self) -> str:
        """The resource as in ``jobs.batch`` or ``speculativemodels.specdec.dev/status``."""
        bare = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{bare}/{self.subresource}" if self.subresource else bare

    def attributes(self) -> JsonObject:
        """What a SelfSubjectAccessReview asks for."""
        asked = {
            "namespace": self.namespace,
            "verb": self.verb,
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "name": self.name,
        }
        return {key: value for key, value in asked.items() if value}


def permissions(rights: Iterable[Right], *, namespace: str = "") -> tuple[Permission, ...]:
    """Every permission that rights consist of, in a namespace or in all."""
    return tuple(
        Permission(
            verb=verb,
            group=right.resource.group,
            resource=right.resource.plural,
            subresource=right.subresource,
            namespace=namespace,
            name=name,
            optional=verb in right.optional,
        )
        for right in rights
        for name in right.names or ("",)
        for verb in right.verbs
    )


def lacking(needed: Iterable[Permission], rules: Sequence[Mapping[str, Sequence[str]]]) -> tuple[Permission, ...]:
    """The permissions that no rule gives.

    Args:
        rules: ``resourceRules`` of a SelfSubjectRulesReview.
    """
    return tuple(permission for permission in needed if not any(_gives(rule, permission) for rule in rules))


def _gives(rule: Mapping[str, Sequence[str]], permission: Permission) -> bool:
    resource = permission.resource
    named = {f"{resource}/{permission.subresource}", f"*/{permission.subresource}"} if permission.subresource else set()
    names = rule.get("resourceNames") or ()
    return (
        bool({"*", permission.verb} & set(rule.get("verbs") or ()))
        and bool({"*", permission.group} & set(rule.get("apiGroups") or ()))
        and bool({"*", *(named or {resource})} & set(rule.get("resources") or ()))
        and (not names or (bool(permission.name) and permission.name in names))
    )


def missing_in_words(missing: Iterable[Permission], *, account: str) -> str:
    """Every missing permission by verb, resource and namespace, what grants it, and how to look; empty if none is.

    Args:
        account: as the API server knows it, such as ``system:serviceaccount:NAMESPACE:NAME``; empty if unknown.
    """
    ordered = sorted(missing)
    if not ordered:
        return ""
    what = "; ".join(_by_place(ordered))
    return f"the operator may not {what}. {remedy(ordered[0], account=account)}"


def remedy(permission: Permission, *, account: str) -> str:
    """What grants a permission, and the command that tells whether it is granted."""
    place = f"--namespace={permission.namespace}" if permission.namespace else "--all-namespaces"
    resource, _, subresource = permission.qualified_name.partition("/")
    words = [
        *("kubectl auth can-i", permission.verb, f"{resource}/{permission.name}" if permission.name else resource),
        *([f"--subresource={subresource}"] if subresource else []),
        *(place, f"--as={account or 'ACCOUNT'}"),
    ]
    # A Lease is needed in the operator's own namespace, which is not among those that are listed.
    watched = permission.namespace if permission.resource != LEASES.plural else ""
    listed = f" and {watched} among its namespaces" if watched else ""
    return (
        f"Remedy: apply the roles of this release again: helm upgrade with rbac.create=true{listed}, or kubectl apply "
        f"--server-side -f manifests/operator.yaml (namespaced: -k your overlay). Check: {' '.join(words)}"
    )


def _by_place(ordered: Sequence[Permission]) -> list[str]:
    """What is missing, with the namespaces in which the same is."""
    places: dict[str, list[str]] = {}
    for namespace, there in groupby(ordered, key=lambda permission: permission.namespace):
        places.setdefault(_by_resource(list(there)), []).append(namespace)
    return [f"{what} {_namespaces(names)}" for what, names in places.items()]


def _by_resource(there: Sequence[Permission]) -> str:
    found: dict[str, list[str]] = {}
    for permission in there:
        named = f"{permission.qualified_name} {permission.name}".strip()
        found.setdefault(named, []).append(permission.verb)
    return ", ".join(f"{'/'.join(verbs)} {resource}" for resource, verbs in found.items())


def _namespaces(names: Sequence[str]) -> str:
    if names == [""]:
        return "in all namespaces"
    shown, more = ", ".join(names[:_NAMED_NAMESPACES]), len(names) - _NAMED_NAMESPACES
    return f"in namespace {shown}" + (f" and {more} more" if more > 0 else "")
