"""Signs what is shared, and checks signatures, with `ssh-keygen`, which most users have, with keys."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from habilis.core.errors import ForgeError

NAMESPACE = 'habilis-tools'
"""Namespace of the signatures: one that was made for something else is refused."""

_SECONDS = 30
_KEY = re.compile(r'(?:ssh|ecdsa|sk)-\S+ +[A-Za-z0-9+/]+=*')


class NoSshKeygen(ForgeError):
    """`ssh-keygen` is not installed."""


def sign(data: bytes, key: Path) -> bytes:
    """The signature of a private key, or of the key in the agent that a public one names. Raises `ForgeError`."""
    if not key.is_file():
        msg = f'cannot sign: there is no key {key}; make one with: ssh-keygen -t ed25519 -f {key}'
        raise ForgeError(msg)
    done = _run(['-Y', 'sign', '-f', str(key), '-n', NAMESPACE], data, seconds=None)  # it may ask for a passphrase
    if done.returncode:
        msg = f'cannot sign with {key}: {_reason(done)}'
        raise ForgeError(msg)
    return done.stdout


def check_signature(data: bytes, signature: bytes, trusted: Path | None = None) -> str:
    """The fingerprint of the key that made a signature. Raises `ForgeError` if the signature is wrong.

    With `trusted`, a file of public keys, one of them must have made it.
    """
    with tempfile.TemporaryDirectory(prefix='habilis-') as folder:
        file, signers = Path(folder, 'signature'), Path(folder, 'signers')
        file.write_bytes(signature)
        command = ['-Y', 'check-novalidate', '-n', NAMESPACE, '-s', str(file)]
        done = _run(command, data)
        found = re.search(rb'key (SHA256:[A-Za-z0-9+/=]+)', done.stdout)
        if done.returncode or found is None:
            msg = f'its signature is wrong ({_reason(done)})'
            raise ForgeError(msg)
        signer = found[1].decode()
        if trusted is not None:
            signers.write_text(''.join(f'* {key}\n' for key in public_keys(trusted)), encoding='utf-8')
            command = ['-Y', 'verify', '-n', NAMESPACE, '-s', str(file), '-f', str(signers), '-I', 'habilis']
            if _run(command, data).returncode:
                msg = f'it is signed by {signer}, which is not a key of {trusted}'
                raise ForgeError(msg)
    return signer


def public_keys(path: Path) -> list[str]:
    """The keys of a file such as `id_ed25519.pub`. Raises `ForgeError`."""
    try:
        text = path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        msg = f'cannot read the public key {path}: {getattr(error, "strerror", None) or "it is not text"}'
        raise ForgeError(msg) from error
    keys = [found[0] for line in text.splitlines() if (found := _KEY.match(line.strip()))]
    if not keys:
        msg = f'{path} has no public key; give the file that ends in .pub'
        raise ForgeError(msg)
    return keys


def _run(
    arguments: Sequence[str], data: bytes, *, seconds: float | None = _SECONDS
) -> 'subprocess.CompletedProcess[bytes]':
    try:
        return subprocess.run(['ssh-keygen', *arguments], input=data, capture_output=True, check=False, timeout=seconds)
    except FileNotFoundError as error:
        msg = 'signatures need ssh-keygen, which is not installed: install OpenSSH'
        raise NoSshKeygen(msg) from error
    except subprocess.TimeoutExpired as error:
        msg = f'ssh-keygen gave no answer within {_SECONDS} seconds'
        raise ForgeError(msg) from error


def _reason(done: 'subprocess.CompletedProcess[bytes]') -> str:
    lines = [line for line in done.stderr.decode(errors='replace').splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else f'ssh-keygen ended with {done.returncode}'
