"""Files of tools that are signed."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.library.library import Library
from habilis.forge.sharing.archives import INDEX, SIGNATURE
from habilis.forge.sharing.signatures import NoSshKeygen, check_signature, public_keys, sign
from habilis.forge.sharing.transfer import export_tools, import_tools
from tests.forge.samples import double
from tests.requirements import require


@pytest.fixture(autouse=True)
def _ssh_keygen() -> None:  # pyright: ignore[reportUnusedFunction]
    require('ssh-keygen')


def new_key(path: Path) -> Path:
    subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'some one', '-f', path], check=True)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return new_key(tmp_path / 'key')


@pytest.fixture
def public(key: Path) -> Path:
    return key.with_suffix('.pub')


@pytest.fixture
def signed(tmp_path: Path, key: Path) -> Path:
    library = Library(tmp_path / 'library')
    library.add(double())
    export_tools(library, ['double'], tmp_path / 'x.zip', key=key)
    return tmp_path / 'x.zip'


@pytest.fixture
def other(tmp_path: Path) -> Library:
    return Library(tmp_path / 'other')


def changed(path: Path, **entries: bytes | None) -> Path:
    """The file with other signature or index."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    named = {{'index': INDEX, 'signature': SIGNATURE}[name]: data for name, data in entries.items()}
    new = path.with_name('changed.zip')
    with zipfile.ZipFile(new, 'w') as archive:
        for name, data in {**files, **named}.items():
            if data is not None:
                archive.writestr(name, data)
    return new


async def test_a_file_signed_by_a_trusted_key_is_imported(signed: Path, other: Library, public: Path) -> None:
    report = await import_tools(other, signed, trust=public)
    assert report.is_signed
    assert report.signer.startswith('SHA256:')
    assert other.manifest('double').note == f'imported from x.zip, signed by {report.signer}'
    assert (await import_tools(other, signed)).signer == report.signer


async def test_other_keys_and_missing_signatures_are_refused(
    signed: Path, other: Library, public: Path, tmp_path: Path
) -> None:
    stranger = new_key(tmp_path / 'stranger').with_suffix('.pub')
    with pytest.raises(ForgeError, match=r'x\.zip is refused: it is signed by SHA256:\S+, which is not a key of'):
        await import_tools(other, signed, trust=stranger)
    unsigned = changed(signed, signature=None)
    with pytest.raises(ForgeError, match='it is not signed; to import it all the same, leave out --trust'):
        await import_tools(other, unsigned, trust=public)
    assert other.names() == []
    report = await import_tools(other, unsigned)
    assert (report.is_signed, len(report.added)) == (False, 1)
    both = tmp_path / 'team.keys'
    both.write_text(f'# our team\n{stranger.read_text()}{public.read_text()}')
    assert (await import_tools(other, signed, trust=both)).is_signed


@pytest.mark.parametrize(
    'signature', [b'nonsense', b'-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n']
)
async def test_a_wrong_signature_is_refused_also_without_trust(signed: Path, other: Library, signature: bytes) -> None:
    with pytest.raises(ForgeError, match=r'changed\.zip is refused: its signature is wrong'):
        await import_tools(other, changed(signed, signature=signature))
    assert other.names() == []


async def test_a_signature_of_other_content_or_for_another_purpose_is_wrong(
    signed: Path, other: Library, key: Path, public: Path
) -> None:
    with zipfile.ZipFile(signed) as archive:
        index = archive.read(INDEX)
    with pytest.raises(ForgeError, match='its signature is wrong'):
        await import_tools(other, changed(signed, signature=sign(index + b' ', key)), trust=public)
    command = ['ssh-keygen', '-Y', 'sign', '-f', str(key), '-n', 'git']
    elsewhere = subprocess.run(command, input=index, capture_output=True, check=True).stdout
    with pytest.raises(ForgeError, match='its signature is wrong'):
        await import_tools(other, changed(signed, signature=elsewhere), trust=public)


def test_keys_that_are_none_are_named(tmp_path: Path, key: Path) -> None:
    with pytest.raises(ForgeError, match=r'there is no key .*; make one with: ssh-keygen'):
        sign(b'x', tmp_path / 'none')
    (tmp_path / 'text').write_text('hello')
    with pytest.raises(ForgeError, match='cannot sign with'):
        sign(b'x', tmp_path / 'text')
    for wrong in (key, tmp_path / 'text'):
        with pytest.raises(ForgeError, match=r'has no public key; give the file that ends in \.pub'):
            public_keys(wrong)
    with pytest.raises(ForgeError, match='cannot read the public key'):
        public_keys(tmp_path)


async def test_without_ssh_keygen_only_signatures_are_missing(
    signed: Path, other: Library, public: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PATH', '')
    for work in (lambda: sign(b'x', key), lambda: check_signature(b'x', b'y')):
        with pytest.raises(NoSshKeygen, match='install OpenSSH'):
            work()
    with pytest.raises(NoSshKeygen):
        await import_tools(other, signed, trust=public)
    report = await import_tools(other, signed)
    assert (report.is_signed, report.signer, len(report.added)) == (True, '', 1)
