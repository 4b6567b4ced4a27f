"""An MCP server in plain JSON over stdio, with no package: it starts at once, and can misbehave in any way.

`python raw_server.py FILE` offers the tools of a JSON file: a list of {tool, does}. `does` says what a call does; see
`act`. Each call is a line in `FILE.calls`, each start one in `FILE.starts`.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def send(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
    sys.stdout.flush()


def text(words: str, **more: object) -> dict[str, object]:
    return {'content': [{'type': 'text', 'text': words}], **more}


def notify(method: str, params: dict[str, object]) -> None:
    send({'method': f'notifications/{method}', 'params': params})


def act(does: str, params: dict[str, Any]) -> dict[str, object] | None:
    """The result of a call; None if there is none."""
    arguments: dict[str, Any] = params.get('arguments') or {}
    if does == 'echo':
        return text(json.dumps(arguments, sort_keys=True))
    if does.startswith('return '):
        data = json.loads(does.removeprefix('return '))
        return text(json.dumps(data), structuredContent=data)
    if does == 'fail':
        return text('no such <b>city</b>', isError=True)
    if does == 'environment':
        return text(json.dumps(sorted(os.environ)))
    if does == 'picture':
        return {'content': [{'type': 'image', 'data': 'iVBORw0KGgo=', 'mimeType': 'image/png'}]}
    if does == 'die':
        sys.stderr.write('out of coffee\n')
        sys.stderr.flush()
        os._exit(3)
    if does == 'hang':
        time.sleep(1000)
    if does == 'huge':
        return text('x' * 100_000_000)
    if does == 'flood':
        while True:
            notify('message', {'level': 'info', 'data': 'again'})
    if does == 'garbage':
        sys.stdout.write('{"jsonrpc": "2.0", "id": \n')
        sys.stdout.flush()
        return None
    if does == 'report':
        notify('message', {'level': 'warning', 'data': 'half way'})
        meta: dict[str, Any] = params.get('_meta') or {}
        notify('progress', {'progressToken': meta.get('progressToken'), 'progress': 1, 'total': 2, 'message': 'on it'})
        return text('done')
    if does.startswith('become '):
        offered[:] = json.loads(does.removeprefix('become '))
        notify('tools/list_changed', {})
        return text('changed')
    if does.startswith('ask '):
        send({'id': 'asked', **json.loads(does.removeprefix('ask '))})
        return text(json.dumps(json.loads(sys.stdin.readline()).get('result')))
    raise ValueError(does)


path = Path(sys.argv[1])
offered: list[dict[str, Any]] = json.loads(path.read_text())
with open(f'{path}.starts', 'a') as starts:
    starts.write('started\n')
if os.environ.get('RAW_SERVER') == 'refuse':
    sys.exit('I do not start today')
for line in sys.stdin:
    request = json.loads(line)
    method: str | None = request.get('method')
    params: dict[str, Any] = request.get('params') or {}
    answer: dict[str, object] | None = {}
    if method == 'server/discover':
        send({'id': request['id'], 'error': {'code': -32601, 'message': 'no such method'}})
        continue
    if method == 'initialize':
        answer = {
            'protocolVersion': params['protocolVersion'],
            'capabilities': {'tools': {'listChanged': True}},
            'serverInfo': {'name': 'raw', 'version': '1'},
        }
    elif method == 'tools/list':
        answer = {'tools': [one['tool'] for one in offered]}
    elif method == 'tools/call':
        with open(f'{path}.calls', 'a') as calls:
            calls.write(f'{params["name"]} {json.dumps(params.get("arguments"))}\n')
        [does] = [one['does'] for one in offered if one['tool'].get('name') == params['name']]
        answer = act(str(does), params)
    elif 'id' not in request:
        continue
    if answer is not None:
        send({'id': request['id'], 'result': answer})
