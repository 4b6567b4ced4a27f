"""All measurements of `python -m benchmarks model`: the first reply of the embedded model, by build of llama.cpp."""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.fresh_process import last_line
from benchmarks.measurement import Sample, load_average, summarize
from benchmarks.report import Comparison, Pair, Progress, Report, Row, Target, make_report
from habilis.agent.context.prompt import PromptParts, system_prompt
from habilis.core.errors import ModelError
from habilis.core.folders import cache_folder
from habilis.models.local import ensure_engine, store

TASK = 'What is the sum of the squares of the numbers from 1 to 10?'
MAX_TOKENS = 24
TIMES_SOONER = 2.5
_PROGRAM = """
import asyncio, sys
from habilis.models.config import ModelConfig
from habilis.models.contract import Message
from habilis.models.local import LocalModel

async def main():
    model = LocalModel(ModelConfig(model=sys.argv[1], max_tokens=int(sys.argv[4])))
    await model.request([Message(role='system', text=sys.argv[2]), Message(role='user', text=sys.argv[3])])

asyncio.run(main())
"""
ENGINES = ('prebuilt', 'xllamacpp')


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Measure in new processes: the first has to evaluate the prompt, the next finds it evaluated. Takes minutes."""
    load = load_average()
    weights = store.find('')
    if await ensure_engine(on_message=progress) is None:
        return make_report([_not_measured('the prebuilt llama.cpp is not installed here')], load=load, quick=quick)
    times: dict[tuple[str, str], list[float]] = {(engine, kind): [] for engine in ENGINES for kind in _LABELS}
    for number in range(1 if quick else 3):
        for engine in ENGINES:  # one after the other, so that other load affects both alike
            with tempfile.TemporaryDirectory() as cache:
                shutil.copytree(cache_folder() / 'engines', Path(cache) / 'engines')
                for kind in _LABELS:
                    progress(f'{engine}, {kind}, round {number + 1}')
                    times[engine, kind].append(await _first_reply(engine, weights, cache))
    rows: list[Row] = []
    for kind, label in _LABELS.items():
        ours, peer = (summarize(times[engine, kind]) for engine in ENGINES)
        rows += _compared(kind, label, ours, peer)
    return make_report(rows, load=load, quick=quick)


_LABELS = {
    'cold': 'first reply in a new process, prompt evaluated',
    'cached': 'the same, prompt found evaluated on the disk',
}


def _compared(kind: str, label: str, ours: Sample, peer: Sample) -> list[Row]:
    pair = Pair(ours=ours, peer=peer)
    target = Target(bound=TIMES_SOONER, sense='at least')
    return [
        Row(
            key=kind,
            label=label,
            unit='s',
            value=ours.median,
            spread=ours,
            comparison=Comparison(peer='xllamacpp', pair=pair),
        ),
        Row(key=f'{kind}_ratio', label='xllamacpp ÷ ours', unit='×', value=pair.ratio, target=target),
    ]


def _not_measured(why: str) -> Row:
    return Row(key='cold', label=_LABELS['cold'], unit='s', note=why)


async def _first_reply(engine: str, weights: Path, cache: str) -> float:
    """Seconds from the start of a process to the end of its first reply."""
    prompt = system_prompt(PromptParts(functions=False))
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, '-c', _PROGRAM, f'local:{weights}', prompt, TASK, str(MAX_TOKENS)),
        env={**os.environ, 'HABILIS_ENGINE': engine, 'HABILIS_CACHE': cache},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    if process.returncode != 0:
        msg = f'{engine}: {last_line(errors.decode("utf-8", "replace"))}'
        raise ModelError(msg)
    return time.perf_counter() - started
