"""The error tree of the API's own code. Bad input of users is no error here: it becomes findings."""

from __future__ import annotations


class ApiDefinitionError(Exception):
    """A model cannot be an API: what it says has no place in a CustomResourceDefinition."""


class UnsupportedConstructError(ApiDefinitionError):
    """A field's type has no structural schema."""


class UnboundedError(ApiDefinitionError):
    """A string, list or map has no upper bound."""
