"""Credentials from a kubeconfig file."""

from __future__ import annotations

import asyncio
import base64
import binascii
import threading
from typing import TYPE_CHECKING, Any

import yaml

from specdec_operator.cluster.credentials import Credentials, FileToken, StaticToken, Tls, TokenSource
from specdec_operator.cluster.errors import CredentialsError

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN_FIELDS = ("exec", "auth-provider")


def kubeconfig_credentials(path: Path, *, context: str | None = None) -> Credentials:
    """Return the credentials of one context of a kubeconfig file.

    Args:
        path: the file; relative paths inside it are relative to its folder.
        context: name of the context; None takes the file's current one.

    Raises:
        CredentialsError: the file can't be read, lacks a part, or needs a plugin that isn't there.
    """
    file = _Kubeconfig(path)
    name = context or file.content.get("current-context") or ""
    chosen = file.named("contexts", name)
    cluster = file.named("clusters", chosen.get("cluster", ""))
    user = file.named("users", chosen.get("user", "")) if chosen.get("user") else {}
    if not cluster.get("server"):
        raise CredentialsError(f"{path}: cluster {chosen.get('cluster')!r} has no server")
    if cluster.get("tls-server-name"):
        raise CredentialsError(f"{path}: tls-server-name is not supported; use the name in the server's certificate")
    plugin = PluginToken(path, context=name) if any(user.get(field) for field in PLUGIN_FIELDS) else None
    # A plugin may give a certificate in place of a token.
    identity = plugin.certificate_files() if plugin else user
    return Credentials(
        server=str(cluster["server"]).rstrip("/"),
        namespace=chosen.get("namespace") or "default",
        tls=Tls(
            authority=file.pem(cluster, "certificate-authority"),
            certificate=file.pem(identity, "client-certificate"),
            private_key=file.pem(identity, "client-key"),
            verify=not cluster.get("insecure-skip-tls-verify", False),
        ),
        tokens=plugin or file.tokens(user),
        headers=_impersonation(user),
    )


class _Kubeconfig:
    """A kubeconfig file, with errors that name it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise CredentialsError(f"kubeconfig {path}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise CredentialsError(f"kubeconfig {path} is not YAML: {error}") from error
        if not isinstance(content, dict):
            raise CredentialsError(f"kubeconfig {path} holds no map; is it a kubeconfig file?")
        self.content: dict[str, Any] = content

    def named(self, section: str, name: str) -> dict[str, Any]:
        """Return an entry of one of the file's lists."""
        entries = self.content.get(section) or []
        for entry in entries:
            if entry.get("name") == name:
                found: dict[str, Any] = entry.get(section.removesuffix("s")) or {}
                return found
        known = ", ".join(str(entry.get("name")) for entry in entries) or "none"
        raise CredentialsError(f"{self.path}: no {section.removesuffix('s')} named {name!r}; there are: {known}")

    def pem(self, section: dict[str, Any], field: str) -> str | None:
        """Return PEM text that stands in the file itself, or in a file that it names."""
        data = section.get(f"{field}-data")
        if data:
            try:
                return base64.b64decode(data, validate=True).decode("ascii")
            except (binascii.Error, UnicodeDecodeError) as error:
                raise CredentialsError(f"{self.path}: {field}-data is not base64 of PEM text") from error
        name = section.get(field)
        if not name:
            return None
        try:
            return (self.path.parent / str(name)).read_text(encoding="ascii")
        except OSError as error:
            raise CredentialsError(f"{self.path}: {field} {name}: {error.strerror}") from error

    def tokens(self, user: dict[str, Any]) -> TokenSource:
        """Return where a user's tokens come from."""
        if user.get("tokenFile"):
            return FileToken(self.path.parent / user["tokenFile"])
        return StaticToken(user.get("token"))


def _impersonation(user: dict[str, Any]) -> dict[str, str]:
    return {"Impersonate-User": user["as"]} if user.get("as") else {}


class PluginToken:
    """A token that a plugin named in a kubeconfig file makes; the ``kubernetes`` package runs the plugin.

    Args:
        path: the kubeconfig file.
        context: name of the context.

    Raises:
        CredentialsError: the ``kubernetes`` package is not installed, or the plugin failed.
    """

    def __init__(self, path: Path, *, context: str) -> None:
        self._path = path
        self._context = context
        self._lock = threading.Lock()
        self._configuration = self._load()

    async def token(self) -> str | None:
        """Return the token, made anew when it has expired."""
        return await asyncio.to_thread(self._token)

    def certificate_files(self) -> dict[str, str | None]:
        """Return the plugin's client certificate and key as a kubeconfig user names such files."""
        return {
            "client-certificate": self._configuration.cert_file,
            "client-key": self._configuration.key_file,
        }

    def _load(self) -> Any:
        try:
            # A heavy import, needed for plugins alone.
            from kubernetes import client, config  # noqa: PLC0415
        except ImportError as error:
            raise CredentialsError(
                f"{self._path}: context {self._context!r} uses a login plugin, which needs the kubernetes package: "
                "pip install 'specdec-operator[kubeconfig]'"
            ) from error
        configuration: Any = client.Configuration()
        load: Any = config.load_kube_config
        try:
            load(config_file=str(self._path), context=self._context, client_configuration=configuration)
        except config.ConfigException as error:
            raise CredentialsError(f"{self._path}: context {self._context!r}: {error}") from error
        return configuration

    def _token(self) -> str | None:
        with self._lock:
            value = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return str(value).removeprefix("Bearer ") if value else None
