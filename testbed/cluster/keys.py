"""Keys and certificates, all on P-256: RSA takes a tenth of a server's start, and time of each handshake."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIFETIME = dt.timedelta(days=365)
# Clocks of machines that share a kubeconfig differ a little.
EARLIER = dt.timedelta(hours=1)


@dataclass(frozen=True)
class ServingCertificate:
    """A server's certificate and its key, in PEM.

    Attributes:
        chain: the certificate, then that of the authority which signed it and nothing else.
        key: the private key of the first.
    """

    chain: str
    key: str

    @classmethod
    def new(cls, *, addresses: Sequence[str], names: Sequence[str] = ()) -> ServingCertificate:
        """Make one for a server's IP addresses and DNS names, signed by an authority of its own."""
        authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        authority = _signed(_authority(authority_key), authority_key)
        alternatives = [*map(x509.DNSName, names), *(x509.IPAddress(ip_address(each)) for each in addresses)]
        certificate = _signed(_server(key, authority, alternatives), authority_key)
        return cls(chain=_pem(certificate) + _pem(authority), key=_key_pem(key))

    def write(self, certificate: Path, key: Path) -> None:
        """Write the two files; the key is readable by its owner only."""
        certificate.parent.mkdir(parents=True, exist_ok=True)
        certificate.write_text(self.chain, encoding="ascii")
        key.touch(mode=0o600)
        key.write_text(self.key, encoding="ascii")


def new_signing_key() -> str:
    """Return a new private key in PEM."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    subject = _name("testbed authority")
    return (
        _builder(key, subject=subject, issuer=subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )


def _server(
    key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, alternatives: Sequence[x509.GeneralName]
) -> x509.CertificateBuilder:
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
        authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    )
    return (
        _builder(key, subject=_name("testbed server"), issuer=authority.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(issuer, critical=False)
    )


def _builder(key: ec.EllipticCurvePrivateKey, *, subject: x509.Name, issuer: x509.Name) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode("ascii")
