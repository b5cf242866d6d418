"""Signatures: who vouches for a certificate. Optional, with Ed25519 keys as OpenSSL and OpenSSH write them.

What is signed is the certificate's JSON text with sorted keys and no spaces, after a line that says what it
is. The signature is kept in the certificate, under `signature`, and is no part of what is signed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.certificates.certificate import as_certificate, canonical
from surepick.errors import FileError, missing_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"
_FIRST_LINE = b"surepick certificate\n"
_HOW = "make one with `ssh-keygen -t ed25519 -f mykey` (or `openssl genpkey -algorithm ed25519 -out mykey`)"


def sign(certificate: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """The certificate with a signature by this key; one that it had is replaced."""
    values = as_certificate(certificate)
    value = key.sign(_signed(values)).hex()
    made = {"algorithm": ALGORITHM, "public_key": hex_of(key.public_key()), "value": value}
    return {**values, "signature": made}


def objection_to_signature(certificate: Mapping[str, Any], key: Ed25519PublicKey) -> str | None:
    """Why this key did not sign the certificate as it is; None if it did."""
    from cryptography.exceptions import InvalidSignature

    values = as_certificate(certificate)
    made = values.get("signature")
    if made is None:
        return "the certificate is not signed"
    if not isinstance(made, dict) or made.get("algorithm") != ALGORITHM:
        return f"the certificate's signature is not of the kind {ALGORITHM}"
    try:
        key.verify(bytes.fromhex(made["value"]), _signed(values))
    except (InvalidSignature, LookupError, TypeError, ValueError):
        if made.get("public_key") != hex_of(key):
            return f"the certificate was signed with another key: {str(made.get('public_key'))[:80]}"
        return "the certificate was changed after it was signed"
    return None


def read_key(path: Path, password: Callable[[], str] | None = None) -> Any:
    """The key in this file, PEM or OpenSSH: private if its `password` can be asked for, else public."""
    data = _content(path)
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    form = "ssh" if b"OPENSSH" in data or data.startswith(b"ssh-") else "pem"
    load = getattr(serialization, f"load_{form}_{'public' if password is None else 'private'}_key")
    try:
        try:
            key = load(data) if password is None else load(data, None)
        except TypeError:  # it is encrypted
            assert password is not None
            key = load(data, password().encode())
        if not isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey):
            raise TypeError("it is a key of another kind")
    except Exception as error:  # of the many that keys raise
        raise FileError(f"{str(path)!r} is no {ALGORITHM} key to use here: {error}; {_HOW}") from None
    return key


def require_cryptography() -> None:
    """Raise an error that says what to install if the package cryptography is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise missing_extra("cryptography", "sign") from None


def hex_of(key: Ed25519PublicKey) -> str:
    """The 32 bytes of a public key, by which people can compare it."""
    return key.public_bytes_raw().hex()


def _signed(values: Mapping[str, Any]) -> bytes:
    text = canonical({name: value for name, value in values.items() if name != "signature"})
    try:
        return _FIRST_LINE + text.encode()
    except UnicodeEncodeError as error:
        raise FileError(f"the certificate holds what UTF-8 cannot: {error}") from None


def _content(path: Path) -> bytes:
    from surepick.tables import refuse_endless

    require_cryptography()
    try:
        refuse_endless(path)
        return path.read_bytes().strip() + b"\n"
    except OSError as error:
        raise FileError(f"cannot read the key {str(path)!r}: {error.strerror or error}") from None
