"""What happens to the store while a run is under way."""

import asyncio
import ctypes
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from habilis.core.errors import CorruptRecord
from habilis.journal.contract import Store
from habilis.journal.runs import fork
from tests.crash.killing import Case, Ended, Forks, House, with_store
from tests.crash.stores import STORES
from tests.journal.servers import PostgresServer, RedisServer, Server
from tests.journal.stores import test_postgres, test_redis

ROOT = Path(__file__).parents[2]
ON_DISK = ('sqlite', 'files')


# Servers --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['postgres', 'redis'])
def test_a_server_that_is_killed_and_comes_back_costs_nothing(kind: str, forks: Forks, tmp_path: Path) -> None:
    server: Server = (
        PostgresServer() if kind == 'postgres' else RedisServer('--appendonly', 'yes', '--appendfsync', 'always')
    )
    try:
        server.start()
        house = House(forks, server.url, tmp_path)
        expected = house.expected
        for effects in (3, 12, 20):
            case = house.case()
            pid = case.start()
            while len(case.effects) < effects:
                time.sleep(0.002)
            server.kill()
            time.sleep(0.2)
            server.start()
            ended = case.wait(pid)
            case.look()
            if ended.error:  # it was told, and may be gone on with
                assert ended.error.startswith('StoreUnavailable: ')
                ended = case.attempt()
            case.check(ended, expected)
    finally:
        server.close()


# Disks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('house', ON_DISK, indirect=True)
def test_a_disk_that_is_full_is_named_and_when_there_is_room_again_the_run_continues(house: House) -> None:
    expected = house.expected
    named = 0
    for room in (2_000, 8_000, 14_000, 20_000, 30_000, 60_000, 120_000, 250_000):
        case = house.case()
        ended = case.attempt(room=room)
        if ended.error:
            assert re.match(r'StoreUnavailable: the journal at \S+ is unavailable: ', ended.error), ended.error
            named += 1
        case.finish(expected)
    assert named > 1


def _like_anybody() -> None:
    """Root may write everywhere. Without these two capabilities it is as bound by permissions as everybody."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, 'prctl'):
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def _as_anybody(case: Case) -> Ended:
    command = [sys.executable, '-m', 'tests.crash.attempt', json.dumps(asdict(case.plan))]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=_like_anybody)
    return Ended(status=0, said=json.loads(done.stdout))


@pytest.mark.parametrize('kind', ON_DISK)
def test_a_run_whose_store_may_not_be_written_says_so_and_does_nothing(kind: str, forks: Forks, tmp_path: Path) -> None:
    place = tmp_path / 'store'
    place.mkdir()
    house = House(forks, f'sqlite:{place}/runs.db' if kind == 'sqlite' else f'files:{place}/runs', tmp_path)
    case = house.case()
    assert case.attempt(trouble='dies before', at=20).killed
    everything = [place, *place.rglob('*')]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = case.effects
    ended = _as_anybody(case)
    for path in everything:
        path.chmod(0o700)
    assert re.match(
        rf'StoreUnavailable: the journal at {place}\S+ is unavailable: .*(read-only|permission denied)', ended.error
    )
    assert case.effects == before
    case.finish(house.expected)


# Damage ---------------------------------------------------------------------------------------------------------------


def _damage(house: House, run: str, seq: int) -> None:
    """Change one letter of a record."""

    def changed(line: str) -> str:
        middle = len(line) // 2
        return f'{line[:middle]}{chr(ord(line[middle]) ^ 1)}{line[middle + 1 :]}'

    address = house.store
    if address.startswith('files:'):
        file = house.folder / 'runs' / run / 'records.jsonl'
        lines = file.read_text().split('\n')
        lines[seq - 1] = changed(lines[seq - 1])
        file.write_text('\n'.join(lines))
    elif address.startswith('sqlite:'):
        connection = sqlite3.connect(house.folder / 'runs.db')
        connection.create_function('changed', 1, changed)
        connection.execute('UPDATE records SET line = changed(line) WHERE run = ? AND seq = ?', (run, seq))
        connection.commit()
        connection.close()
    elif address.startswith('postgresql:'):
        table = f'{address.partition("&schema=")[2]}.lines'
        ((line,),) = asyncio.run(
            test_postgres.execute(address, f"SELECT line FROM {table} WHERE run = '{run}' AND seq = {seq}")
        )
        line = changed(line).replace("'", "''")
        asyncio.run(
            test_postgres.execute(address, f"UPDATE {table} SET line = '{line}' WHERE run = '{run}' AND seq = {seq}")
        )
    else:
        key = f'{address.partition("?prefix=")[2]}lines:{run}'
        line = asyncio.run(test_redis.execute(address, 'LINDEX', key, seq - 1)).decode()
        asyncio.run(test_redis.execute(address, 'LSET', key, seq - 1, changed(line)))


@pytest.mark.parametrize('house', STORES, indirect=True)
def test_a_damaged_record_is_named_and_the_run_can_be_forked_before_it(house: House) -> None:
    case = house.case()
    assert case.attempt(trouble='dies before', at=40).killed
    before = case.effects
    _damage(house, case.run, 20)
    ended = case.forks.wait(case.start())
    assert ended.error.startswith(f'CorruptRecord: record 20 of {case.run} is damaged: ')
    assert f'habilis runs fork {case.run} --before 20' in ended.error
    assert case.effects == before

    async def copy(store: Store) -> str:
        with pytest.raises(CorruptRecord):
            await store.load(case.run)
        return (await fork(store, case.run, 20)).run

    forked = Case(house.forks, house.store, house.folder, with_store(house.store, copy))
    os.link(house.folder / f'{case.run}.effects', house.folder / f'{forked.run}.effects')
    ended = forked.attempt()
    assert ended.error == ''
    assert ended.said['value'] == house.expected.value
