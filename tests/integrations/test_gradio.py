"""The example of a chat in Gradio, as its own client sees it. Gradio has an environment of its own: `make gradio`."""

import json
import os
import subprocess
from pathlib import Path

from tests.house.repository import ROOT
from tests.requirements import missing

CLIENT = """
import sys
from gradio_client import Client

client = Client(sys.argv[1], verbose=False)
for text in ('Add 1 and 2', 'Twice that?'):
    print(client.predict({'text': text, 'files': []}, api_name='/reply'))
"""


def test_the_example_answers_and_keeps_its_variables(tmp_path: Path) -> None:
    python = ROOT / '.gradio' / 'bin' / 'python'
    if not python.exists():
        missing('gradio')
    replies = [
        'I add.\n```python\nx = 1 + 2\nprint("sum", x)\n```',
        'It is **3**.',
        '```python\nprint(x * 2)\n```',
        'Six.',
    ]
    script = tmp_path / 'replies.json'
    script.write_text(json.dumps(replies))
    env = {
        **os.environ,
        'HABILIS_DATA': str(tmp_path / 'data'),
        'GRADIO_ANALYTICS_ENABLED': 'False',
        'PYTHONUNBUFFERED': '1',
    }
    command = [python, ROOT / 'examples' / 'gradio_chat.py', f'scripted:{script}']
    server = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert server.stdout is not None
    try:
        lines = iter(server.stdout.readline, '')
        address = next(word for line in lines for word in line.split() if word.startswith('http://'))
        asked = subprocess.run([python, '-c', CLIENT, address], env=env, capture_output=True, text=True, check=False)
    finally:
        server.terminate()
        rest = server.communicate()[0]
    assert asked.returncode == 0, asked.stderr + rest
    assert 'sum 3' in asked.stdout
    assert 'It is **3**.' in asked.stdout
    assert asked.stdout.rstrip().endswith('Six.')
    assert '6' in asked.stdout
