"""A long run as an agent would have recorded it, without running one."""

import time

from habilis.core.codec import Json
from habilis.journal import Record, RunInfo, Store
from habilis.journal.contract import Kind


async def store_run(store: Store, run: str, records: int, *, session: str = 'long', user: str = 'local') -> None:
    """Store a finished run of so many records."""
    now = time.time()
    info = RunInfo(
        run=run, status='done', title='A long run', name='chat', user=user, session=session, created=now, updated=now
    )
    steps = (records - 2) // 2
    made = [_record(1, 'chat#1', 'opened', {'task': 'A long run', 'model': 'scripted:sample'})]
    for step in range(1, steps + 1):
        made.append(_record(2 * step, f'chat#1/ask#{step}', 'done', _reply(step)))
        made.append(_record(2 * step + 1, f'chat#1/cell#{step}', 'done', _cell(step)))
    made += [_record(seq, '', 'noted', {}) for seq in range(len(made) + 1, records)]
    made.append(_record(records, '', 'ended', {'status': 'done', 'value': {'ended': 'answer'}, 'failed': []}))
    await store.create(info, made)


def _record(seq: int, path: str, kind: Kind, value: Json) -> Record:
    return Record(seq=seq, path=path, kind=kind, value=value, at=time.time())


def _reply(step: int) -> Json:
    usage: Json = {'requests': 1, 'input_tokens': 1000, 'output_tokens': 20, 'seconds': 0.5, 'cost': 0.001}
    return {'text': f'Step **{step}**:\n```python\n{_code(step)}\n```', 'model': 'scripted:sample', 'usage': usage}


def _cell(step: int) -> Json:
    variables: Json = {
        name: {'name': name, 'type': 'int', 'size': '', 'text': str(step)} for name in ('x', 'y', 'total', 'names')
    }
    cell: Json = {'stdout': f'{step} of many\n' * 3, 'seconds': 0.01}
    return {'code': _code(step), 'cell': cell, 'observation': '', 'variables': variables}


def _code(step: int) -> str:
    return f'for name in names:\n    total += len(name) * {step}  # step {step}\nprint(total)'
