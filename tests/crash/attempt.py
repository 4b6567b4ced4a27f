"""One process that works on a run: it begins it, or goes on with it, and may have to die on the way.

`python -m tests.crash.attempt ATTEMPT`, with an `Attempt` as JSON, or by `tests.crash.forks`, which is faster.
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from habilis.core.codec import Json
from habilis.core.errors import RunNotFound
from habilis.flows import FlowPaused
from habilis.journal.contract import Store
from habilis.journal.questions import answer_run, open_questions
from habilis.journal.stores.urls import open_store
from tests.crash import scenario
from tests.crash.effects import FOLDER, effects_of
from tests.crash.troubled import Trouble, Troubled


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What a process has to do."""

    run: str
    store: str
    """Its address."""

    effects: str
    """The folder of `effects_file`."""

    temporary: str
    """Its folder for temporary files."""

    trouble: Trouble = ''
    at: int = 0
    """At which of its writes to the store."""

    together: str = ''
    """See `Troubled`."""

    clock: float = 0.0
    """By how many seconds its clock is wrong."""

    room: int = 0
    """No file may be longer."""


async def _begun(store: Store, run: str) -> bool:
    """Whether there is something to go on with."""
    try:
        await store.info(run)
    except RunNotFound:
        return False
    return True


async def answer_all(store: Store, run: str, effects: str) -> int:
    """Be the person who looks whether it was done, and says so. Gives how much was asked."""
    asked = await open_questions(store, run)
    for path, _ in asked:
        seen = [effect for effect in effects_of(effects, run) if effect.path == path]
        answer: Json = {'value': seen[0].value} if seen else {'again': True}
        await answer_run(store, run, answer, path=path)
    return len(asked)


async def _work(attempt: Attempt) -> dict[str, object]:
    started = time.monotonic()
    store = Troubled(open_store(attempt.store), attempt.trouble, attempt.at, attempt.together)
    asked = 0
    try:
        if not await _begun(store, attempt.run):
            run = await scenario.shop.start(journal=store, run_id=attempt.run)
            value = await run.result()
        else:
            asked += await answer_all(store, attempt.run, attempt.effects)
            while True:
                try:
                    value = await scenario.shop.resume(attempt.run, journal=store)
                    break
                except FlowPaused:
                    asked += await answer_all(store, attempt.run, attempt.effects)
    except Exception as error:
        return {'error': f'{type(error).__name__}: {error}', 'writes': store.writes}
    finally:
        await store.close()
    return {'value': value, 'writes': store.writes, 'asked': asked, 'seconds': time.monotonic() - started}


def _shifted(seconds: float) -> Callable[[], float]:
    real = time.time
    return lambda: real() + seconds


def work(attempt: Attempt) -> str:
    """Do it in this process. What came of it, as JSON."""
    os.environ[FOLDER] = attempt.effects
    tempfile.tempdir = attempt.temporary
    if attempt.clock:
        time.time = _shifted(attempt.clock)
    if attempt.room:
        resource.setrlimit(resource.RLIMIT_FSIZE, (attempt.room, attempt.room))
    return json.dumps(asyncio.run(_work(attempt)))


if __name__ == '__main__':
    print(work(Attempt(**json.loads(sys.argv[1]))))
