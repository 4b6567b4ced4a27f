"""Benchmarks of the forge. The speed itself is not tested here."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forge import candidates
from benchmarks.forge.large_library import LargeLibrary, prompt_tokens, search_times
from benchmarks.installation import PeerError
from habilis.core.errors import ForgeError
from habilis.forge.checks.mutation import mutation_score
from habilis.forge.checks.verification import verify
from tests.benchmarks.process import benchmarks

TARGETS = {'verify': 60.0, 'candidates': 4.0, 'mutants': 3.0, 'seeds': 5.0, 'search': 5.0, 'prompt': 600}
PEERS = {'verify_python', 'verify_pytest', 'verify_by_python', 'verify_by_pytest'}


@pytest.mark.slow
def test_a_quick_run_has_every_number() -> None:
    done = benchmarks('forge', '--quick', '--json')
    assert done.returncode == 0, done.stderr
    report: Any = json.loads(done.stdout)
    rows: dict[str, Any] = {row['key']: row for row in report['rows']}
    assert rows.keys() == TARGETS.keys() | PEERS | {'search_more'}
    assert {key: row['target']['bound'] for key, row in rows.items() if row['target']} == TARGETS
    assert {key for key, row in rows.items() if row['value'] is None} == {'search_more'}
    assert rows['prompt']['met'] is True
    assert 'benchmarks: measuring the seed library …\n' in done.stderr


async def test_the_sample_has_what_the_labels_say() -> None:
    assert len((await verify(candidates.sample())).tests) == 10
    assert (await mutation_score(candidates.sample(), seconds=0.05, limit=candidates.MUTANTS)).total == 50


async def test_a_peer_that_fails_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    [plain, _] = candidates.PEERS
    assert await plain.run() > 0
    monkeypatch.setattr(candidates, 'SAMPLE', 'percent_of')
    wrong = candidates.TestPeer(key='', label='', command=('-c', 'raise SystemExit("no")'), expected='passed')
    with pytest.raises(PeerError, match='no'):
        await wrong.run()


async def test_a_large_library_is_searched_and_costs_the_prompt_little(tmp_path: Path) -> None:
    library = LargeLibrary(tmp_path / 'tools')
    library.fill(50)
    assert len(library.names()) == 50
    library.fill(300)
    assert len(library.names()) == 300
    assert all(seconds > 0 for seconds in search_times(library, 1))
    assert 0 < await prompt_tokens(library) <= 600
    with pytest.raises(ForgeError, match='names for'):
        library.fill(10**6)
