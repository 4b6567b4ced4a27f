"""The steps of runs as rows for training."""

import json
from typing import cast

from habilis.agent.agent import Agent
from habilis.agent.durable.training_rows import to_json_lines, training_rows
from habilis.core.secrets import hide
from habilis.journal import MemoryStore, RunInfo
from habilis.journal.runs import read_run, score_run
from habilis.models import Recollection, ScriptedModel
from tests.agent.durable.recorded import block, record_run
from tests.core.test_secrets import KEYS, pem


async def test_rows_are_json_and_the_same_each_time() -> None:
    store = await record_run(
        block('x = double(2)\nprint(x, b"a")'), block('final_answer(x)'), variables={'given': (1, 2)}
    )
    reading = await read_run(store, 'r')
    text = to_json_lines(await training_rows(reading))
    assert text == to_json_lines(await training_rows(await read_run(store, 'r')))
    parsed = [json.loads(line) for line in text.splitlines()]
    assert [(row['step'], row['reward']) for row in parsed] == [(1, None), (2, 1.0)]
    assert parsed[0]['calls'][0]['tool'] == 'double'


async def test_what_a_memory_had_for_a_task_is_in_the_rows_as_the_model_read_it() -> None:
    store = MemoryStore()
    model = ScriptedModel(['Blue.', 'Yes.'])
    async with Agent(model, journal=store, talk=True) as agent, agent.conversation('boat') as chat:
        await chat.run(['My boat?', Recollection('- The boat is blue')])
        await chat.run('Sure?', run_id='r')
    [row] = await training_rows(await read_run(store, 'r'))
    messages = cast('list[dict[str, str]]', row['messages'])
    assert [message['content'] for message in messages] == [message.text for message in model.requests[1].messages]
    assert 'From the memory:\n- The boat is blue' in messages[1]['content']


async def test_a_score_is_the_reward() -> None:
    store = await record_run(block('x = 1'), steps=1)
    assert [row['reward'] for row in await training_rows(await read_run(store, 'r'))] == [0.0]
    await score_run(store, 'r', -0.5)
    assert [row['reward'] for row in await training_rows(await read_run(store, 'r'))] == [-0.5]


async def test_secrets_are_redacted_in_the_rows() -> None:
    hide(['correct horse battery'])
    store = await record_run(block("d = {'correct horse battery': 'sk-12345678abcdef'}\nprint(d)\nfinal_answer(d)"))
    text = to_json_lines(await training_rows(await read_run(store, 'r')))
    assert 'correct horse' not in text
    assert 'sk-12345678abcdef' not in text


async def test_json_web_tokens_and_private_keys_are_redacted_in_the_rows() -> None:
    key, token = pem('RSA PRIVATE KEY'), KEYS['jwt']
    code = (
        f"key = {key!r}\ntoken = '{token}'\nprint(key)\nprint({{'a': [token]}})\ndouble(4)\nfinal_answer([key, token])"
    )
    store = await record_run(block(code), block(code))
    text = to_json_lines(await training_rows(await read_run(store, 'r')))
    assert 'print(key)' in text
    assert 'PRIVATE KEY' not in text
    assert token[-20:] not in text
    assert not any(line[:30] in text for line in key.splitlines())


async def test_a_run_without_steps_has_no_rows() -> None:
    store = MemoryStore()
    await store.create(RunInfo(run='r', name='agent'))
    assert await training_rows(await read_run(store, 'r')) == []
