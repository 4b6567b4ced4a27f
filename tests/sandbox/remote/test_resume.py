"""A connection that breaks costs nothing: no cell is lost, and none is run twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.remote import guest
from habilis.sandbox.session import Sandbox
from habilis.server.settings import ServiceSettings
from tests.sandbox.remote.cutting_proxy import cutting_proxy
from tests.server.running import running

KEY = 'a key for the tests'
CELLS = 25


@pytest.fixture(scope='module')
def port() -> Iterator[int]:
    with running(ServiceSettings(port=0, keys=(KEY,))) as url:
        yield int(url.rpartition(':')[2])


@pytest.mark.parametrize('seed', range(4))
async def test_no_cell_and_no_call_is_lost_or_repeated(port: int, seed: int, tmp_path: Path) -> None:
    called: list[int] = []

    def count(n: int) -> int:
        called.append(n)
        return n

    async def count_later(n: int) -> int:
        called.append(-n)
        return n

    with cutting_proxy(port, seed=seed) as proxy:
        async with await _create(proxy.port, tools=[count, count_later], workspace=tmp_path) as sandbox:
            await sandbox.run('seen = []')
            for n in range(CELLS):
                cell = await sandbox.run(
                    f"seen.append(count({n}))\nprint('cell', {n})\nawait count_later({n})\n"
                    f"open('log', 'a').write('{n}\\n')\nlen(seen)"
                )
                assert (cell.error, cell.value, cell.stdout) == (None, n + 1, f'cell {n}\n')
                assert [change.path for change in cell.files] == ['log']
            assert (await sandbox.run('seen')).value == list(range(CELLS))
        assert proxy.cuts > 5
    assert called == [sign * n for n in range(CELLS) for sign in (1, -1)]
    assert (tmp_path / 'log').read_text() == ''.join(f'{n}\n' for n in range(CELLS))


async def test_a_server_that_stays_away_makes_the_sandbox_broken(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, 'RESUME_SECONDS', 0.2)
    with cutting_proxy(port, seed=0) as proxy:
        proxy.cutting = False
        sandbox = await _create(proxy.port)
        assert (await sandbox.run('x = 1')).ok
        proxy.cutting = True
        proxy.close()
        cell = await sandbox.run("print('x' * 5000)")
        assert cell.error is not None
        assert cell.error.kind == 'broken'
        assert 'connection' in cell.error.message
        await sandbox.close()


async def test_a_server_that_is_not_there_or_refuses_is_named(port: int) -> None:
    with pytest.raises(BackendNotFound, match=r'no sandbox server answers at http://127.0.0.1:9 .*: check the url'):
        await Sandbox.create('remote', url='http://127.0.0.1:9', key=KEY)
    with pytest.raises(SandboxError, match='refused the key'):
        await Sandbox.create('remote', url=f'http://127.0.0.1:{port}', key='wrong')
    with pytest.raises(SandboxError, match='remote needs the address of a server'):
        await Sandbox.create('remote', url='127.0.0.1:8700')


async def _create(port: int, **settings: object) -> Sandbox:
    address = f'http://127.0.0.1:{port}'
    return await Sandbox.create('remote', url=address, key=KEY, limits=Limits(seconds=20), **settings)  # type: ignore[arg-type]
