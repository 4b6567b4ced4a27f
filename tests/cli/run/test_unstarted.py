"""Commands that fail before anything was done leave no run."""

import json

import pytest

from tests.cli.chat import code, script
from tests.cli.process import habilis
from tests.place import Place


@pytest.mark.parametrize(
    'options',
    [
        ('--model', 'gpt-4o'),
        ('--model', 'openai:gpt-4o'),
        ('--model', 'nobody:x'),
        ('--model', 'ollama:x', '--base-url', 'http://127.0.0.1:9/v1'),
        ('--model', 'scripted:missing.json'),
        ('--model', 'scripted:script.json', '--sandbox', 'nothing'),
        ('--model', 'scripted:script.json', '--workspace', 'script.json'),
        ('--model', 'scripted:script.json', '--max-steps', '0'),
        ('--model', 'scripted:script.json', '--what'),
    ],
)
def test_a_command_that_fails_before_the_model_replied_leaves_no_run_and_says_it_once(
    place: Place, options: tuple[str, ...]
) -> None:
    place.environment(HABILIS_RETRIES='0')
    (place.folder / 'script.json').write_text('["```python\\nfinal_answer(1)\\n```"]')
    done = habilis('run', 'Add', '--quiet', *options)
    assert (done.returncode in {1, 2}, done.stdout) == (True, '')
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == len(set(lines)), done.stderr
    assert habilis('runs', 'list', '--json').stdout == '[]\n'


def test_a_run_that_did_something_is_kept_and_so_is_another_run_of_that_id(place: Place) -> None:
    model = script(place.folder, code('x = 1'))
    assert habilis('run', 'Add', '-q', '--model', model, '--run-id', 'mine').returncode == 1  # no second reply
    again = habilis('run', 'Add', '-q', '--model', 'openai:gpt-4o', '--run-id', 'mine')
    assert again.returncode == 1
    (run,) = json.loads(habilis('runs', 'list', '--json').stdout)
    assert (run['run'], run['status'], run['steps']) == ('mine', 'failed', 1)
