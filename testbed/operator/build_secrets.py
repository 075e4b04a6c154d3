"""How this machine reaches its package index, handed to a build without a trace in the image."""

from __future__ import annotations

import shlex
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIXES = ("UV_INDEX_",)
# No settings that name a file or folder of this machine: the build can't see those.
_NAMES = frozenset(
    {
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES"),
        *("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INSECURE_HOST", "UV_HTTP_TIMEOUT"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    }
)
_BUNDLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_BUNDLE_SECRET = "ca-certificates"  # noqa: S105 - a secret's id, no secret
_ENVIRONMENT_SECRET = "environment"  # noqa: S105 - the same


def secret_arguments(environment: Mapping[str, str], directory: Path) -> tuple[str, ...]:
    """Write the build's secrets into a folder and return the options that hand them over.

    Args:
        environment: variables of this process.
        directory: an empty folder that nobody else can read, gone after the build.
    """
    settings = {name: value for name, value in environment.items() if _wanted(name) and value}
    secrets: dict[str, Path] = {}
    if bundle := _certificate_bundle(environment):
        secrets[_BUNDLE_SECRET] = bundle
        inside = f"/run/secrets/{_BUNDLE_SECRET}"
        settings |= {"SSL_CERT_FILE": inside, "PIP_CERT": inside}
    secrets[_ENVIRONMENT_SECRET] = directory / _ENVIRONMENT_SECRET
    lines = (f"{name}={shlex.quote(value)}\n" for name, value in sorted(settings.items()))
    secrets[_ENVIRONMENT_SECRET].write_text("".join(lines), encoding="utf-8")
    return tuple(f"--secret=id={name},src={path}" for name, path in secrets.items())


def _wanted(name: str) -> bool:
    return name.upper() in _NAMES or name.startswith(_PREFIXES)


def _certificate_bundle(environment: Mapping[str, str]) -> Path | None:
    return next((path for path in _bundles(environment) if path.is_file()), None)


def _bundles(environment: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(environment[name]) for name in _BUNDLES if environment.get(name))
    if default := ssl.get_default_verify_paths().cafile:
        yield Path(default)
