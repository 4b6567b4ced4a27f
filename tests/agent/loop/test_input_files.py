"""Images and files of a task: the model sees them, code opens them, and a resumed run has them again."""

import json
from pathlib import Path
from typing import Any

import pytest

from habilis import File, Image
from habilis.agent import Agent
from habilis.agent.durable.training_rows import to_json_lines, training_rows
from habilis.agent.loop.input_files import safe_name
from habilis.core.errors import AgentError, ModelRefused, ModelUnavailable
from habilis.flows import flow
from habilis.journal import MemoryStore
from habilis.journal.runs import read_run
from habilis.models import Message, ScriptedModel
from habilis.models.scripted import Scripted
from habilis.sandbox import Sandbox
from tests.agent.scripts import block, sent
from tests.models.test_files import PNG

SALES = b'region,amount\nnorth,1\nsouth,2\n'
LENGTH = block("final_answer(len(open('/inputs/a.png', 'rb').read()))")


def seeing(*replies: Scripted, journal: Any = 'off', images: bool = True, **options: Any) -> Agent[Any]:
    return Agent[Any](ScriptedModel(list(replies), images=images), journal=journal, **options)


def _model(one: Agent[Any]) -> ScriptedModel:
    assert isinstance(one.model, ScriptedModel)
    return one.model


def _images(one: Agent[Any], number: int) -> list[bytes]:
    return [image.data for message in _model(one).requests[number].messages for image in message.images]


async def test_the_model_sees_an_image_and_code_opens_it(tmp_path: Path) -> None:
    (tmp_path / 'a.png').write_bytes(PNG)
    async with seeing(LENGTH) as one:
        result = await one.run(['What is in this?', Image(tmp_path / 'a.png')])
    assert result.output == len(PNG)
    assert _images(one, 0) == [PNG]
    assert f'- /inputs/a.png (image/png, {len(PNG)} bytes)' in sent(_model(one), 0)
    assert 'no files' not in sent(_model(one), 0)
    assert result.messages[0].text.startswith('What is in this?')


async def test_a_file_is_for_code_of_any_model() -> None:
    code = "import csv\nfinal_answer(sum(int(row['amount']) for row in csv.DictReader(open('/inputs/sales.csv'))))"
    async with seeing(block(code), images=False) as one:
        assert (await one.run(['Sum it up.', File(SALES, name='sales.csv')])).output == 3
    assert '- /inputs/sales.csv (text/csv, 30 bytes):\n<text>\nregion,amount\nnorth,1' in sent(_model(one), 0)
    assert not _images(one, 0)


async def test_the_files_of_a_task_are_read_only_and_never_overwrite_each_other(tmp_path: Path) -> None:
    code = (
        "import os\nnames = sorted(os.listdir('/inputs'))\n"
        "try:\n    open('/inputs/x', 'w')\nexcept OSError:\n    names.append('refused')\nfinal_answer(names)"
    )
    (tmp_path / 'a.txt').write_text('mine')
    files = [File(b'1', name='a.txt'), File(b'2', name='a.txt'), File(b'1', name='a.txt'), File(b'3', name='../b c')]
    async with seeing(block(code), workspace=tmp_path) as one:
        result = await one.run(['List them.', *files])
    assert result.output == ['_b_c', 'a-2.txt', 'a.txt', 'refused']
    assert [path.name for path in tmp_path.iterdir()] == ['a.txt']


def test_names_inside_are_safe() -> None:
    assert safe_name('../../etc/passwd') == '_.._etc_passwd'
    assert safe_name('') == safe_name('...') == 'file'
    assert safe_name('größe 1.png') == 'größe_1.png'
    assert len(safe_name('x' * 300 + '.png')) <= 84
    assert safe_name('a\0b\n') == 'a_b_'


async def test_a_sandbox_of_the_user_gets_them_in_its_workspace(tmp_path: Path) -> None:
    (tmp_path / 'inputs').mkdir()
    (tmp_path / 'inputs' / 'a.txt').write_text('mine')
    code = block("final_answer(open('/workspace/inputs/a-2.txt').read())")
    async with await Sandbox.create(workspace=tmp_path) as sandbox, seeing(code, sandbox=sandbox) as one:
        assert (await one.run(['Read it.', File(b'given', name='a.txt')])).output == 'given'
    assert (tmp_path / 'inputs' / 'a.txt').read_text() == 'mine'
    async with await Sandbox.create() as sandbox, seeing('A pixel.', sandbox=sandbox) as one:
        with pytest.raises(AgentError, match=r'a\.txt cannot be put into a sandbox without a workspace'):
            await one.run(['Read it.', File(b'given', name='a.txt')])
        assert (await one.run(['What is it?', Image(PNG)])).output == 'A pixel.'


async def test_a_model_that_does_not_see_is_named_before_a_run_is_created() -> None:
    store = MemoryStore()
    async with seeing(images=False, journal=store) as one:
        with pytest.raises(ModelRefused, match=r'scripted:script does not see images \(a.png\); use a model that does'):
            await one.run(['What is in this?', Image(PNG, name='a.png')])
    assert await store.runs() == []


async def test_wrong_tasks_are_refused_at_once() -> None:
    async with seeing() as one, seeing(python=False) as silent:
        with pytest.raises(TypeError, match=r"a part of the task must be text, Image\('a.png'\) or File"):
            await one.run(['What is in this?', Path('a.png')])  # pyright: ignore[reportArgumentType]
        with pytest.raises(AgentError, match='the task is empty'):
            await one.run([Image(PNG)])
        with pytest.raises(AgentError, match='x is for code, and this agent writes none'):
            await silent.run(['Read it.', File(b'1', name='x')])


async def test_an_agent_without_python_sees_images() -> None:
    async with seeing('A pixel.', python=False) as one:
        assert (await one.run(['What is it?', Image(PNG)])).output == 'A pixel.'
    assert _images(one, 0) == [PNG]


async def test_further_solutions_have_the_files_too() -> None:
    async with seeing(LENGTH, LENGTH, agree=2) as one:
        result = await one.run(['How long is it?', Image(PNG, name='a.png')])
    assert bool(result.agreement)
    assert _images(one, 1) == [PNG]


# In the journal -------------------------------------------------------------------------------------------------------


async def test_a_resumed_run_has_them_again_and_they_are_recorded_once() -> None:
    store = MemoryStore()
    large = PNG + bytes(100_000)
    async with seeing(block('x = 1'), ModelUnavailable('down'), journal=store) as one:
        with pytest.raises(ModelUnavailable):
            await one.run(['What is it?', Image(large, name='a.png'), File(SALES, name='b')], run_id='r')
    check = block("final_answer((len(open('/inputs/a.png', 'rb').read()), open('/inputs/b', 'rb').read()))")
    async with seeing(check, journal=store) as two:
        result = await two.resume('r')
        assert result.output == (len(large), SALES)
        assert _images(two, 0) == [large]
    async with seeing(journal=store) as three:
        again = await three.resume('r')
        assert [image.data for image in again.messages[0].images] == [large]
    opened, *rest = await store.load('r')
    assert len([name for name in opened.attached if name.startswith('file ')]) == 2
    assert not any(name.startswith('file ') for record in rest for name in record.attached)
    assert all(len(json.dumps(record.value)) < 20_000 for record in (opened, *rest))
    rows = await training_rows(await read_run(store, 'r'))
    assert '/inputs/a.png' in to_json_lines(rows)


async def test_a_conversation_keeps_them() -> None:
    store = MemoryStore()
    async with seeing('One.', LENGTH, journal=store) as one, one.conversation('s') as chat:
        await chat.run('No image yet.')
        await chat.run(['What is it?', Image(PNG, name='a.png')])
    async with seeing(LENGTH, LENGTH, journal=store) as two:
        assert (await two.run('And again?', session='s')).output == len(PNG)
        assert _images(two, 0) == [PNG]
        assert (await two.run('And again?', session='s')).output == len(PNG)
        assert _images(two, 1) == [PNG]
    async with seeing(LENGTH, images=False, journal=store) as blind:
        assert (await blind.run('And without eyes?', session='s')).output == len(PNG)
        assert not _images(blind, 0)


async def test_they_are_part_of_a_history() -> None:
    store = MemoryStore()
    async with seeing('One.', 'Two.', journal=store) as one:
        first = await one.run(['What is it?', Image(PNG)])
        second = await one.run('And now?', history=first.messages, run_id='second')
        assert _images(one, 1) == [PNG]
        assert second.messages[0].images[0].data == PNG
        assert (await one.resume('second')).messages == second.messages
    assert isinstance(second.messages[0], Message)


async def test_in_a_flow_they_are_part_of_the_step() -> None:
    store = MemoryStore()
    images: list[bytes] = []

    @flow(name='looking')
    async def looking() -> str:
        async with seeing('A pixel.') as one:
            result = await one.run(['What is it?', Image(PNG)])
        images.extend(image.data for message in result.messages for image in message.images)
        return str(result.output)

    run = await looking.start(journal=store)
    assert await run.result() == 'A pixel.'
    assert images == [PNG]
