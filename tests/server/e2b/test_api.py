# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""The life of a sandbox of E2B's SDK on our server: create, list, extend, connect, kill."""

import asyncio
from datetime import UTC, datetime

import httpx2
import pytest
from e2b import AuthenticationException, NotFoundException, PtySize, RateLimitException, SandboxException
from e2b.sandbox.sandbox_api import SandboxQuery
from e2b_code_interpreter import AsyncSandbox, Sandbox

from tests.server.e2b.serving import KEYS, Server


def test_a_sandbox_is_described_listed_and_connected_to(server: Server, sandbox: Sandbox) -> None:
    info = sandbox.get_info()
    assert (info.sandbox_id, info.metadata, info.state.value) == (sandbox.sandbox_id, {'who': 'tests'}, 'running')
    sandbox.set_timeout(1000)
    assert 900 < (sandbox.get_info().end_at - datetime.now(UTC)).total_seconds() < 1001
    for metadata, found in (({'who': 'tests'}, True), ({'who': 'nobody'}, False)):
        listed = Sandbox.list(query=SandboxQuery(metadata=metadata), **server.options()).next_items()
        assert (sandbox.sandbox_id in [item.sandbox_id for item in listed]) is found
    again = Sandbox.connect(sandbox.sandbox_id, **server.options())
    assert again.commands.run('echo $GIVEN').stdout == 'at start\n'


def test_pages_of_a_list_follow_each_other(server: Server, sandbox: Sandbox) -> None:
    other = Sandbox.create(**server.options())
    pages = Sandbox.list(limit=1, **server.options())
    found: list[str] = []
    while pages.has_next:
        found += [item.sandbox_id for item in pages.next_items()]
    assert {sandbox.sandbox_id, other.sandbox_id} == set(found)
    assert other.kill()
    assert not other.kill()


async def test_the_async_sdk_does_the_same(server: Server) -> None:
    async with await AsyncSandbox.create(**server.options()) as sandbox:
        assert (await sandbox.commands.run('echo $HOME')).stdout == '/home/user\n'
        await sandbox.files.write('a.txt', 'text')
        assert await sandbox.files.read('a.txt') == 'text'
        assert (await sandbox.run_code("open('a.txt').read()")).text == "'text'"
        events: list[str] = []
        handle = await sandbox.files.watch_dir('.', on_event=lambda event: events.append(event.name))
        await sandbox.files.write('b.txt', '')
        running = await sandbox.commands.run('while [ ! -e stop ]; do sleep 0.05; done; echo done', background=True)
        await sandbox.files.write('stop', '')
        assert (await running.wait()).stdout == 'done\n'
        while 'b.txt' not in events:
            await running.wait()
            await sandbox.is_running()
            await asyncio.sleep(0.02)  # not to be refused as a flood
        await handle.stop()
    assert not await sandbox.is_running()


async def test_our_own_api_lists_it_and_can_delete_it(server: Server) -> None:
    made = Sandbox.create(**server.options())
    async with httpx2.AsyncClient(base_url=server.url, headers={'Authorization': f'Bearer {KEYS[0]}'}) as http:
        path = f'/v1/sandboxes/{made.sandbox_id}'
        assert (await http.get(path)).json()['kind'] == 'e2b'
        refused = await http.post(f'{path}/execute', json={'code': '1'})
        assert (refused.status_code, 'another protocol' in refused.json()['error']) == (400, True)
        assert (await http.delete(path)).status_code == 200
    assert not made.is_running()


def test_a_wrong_key_or_that_of_another_opens_nothing(server: Server, sandbox: Sandbox) -> None:
    with pytest.raises(AuthenticationException, match='unknown key; set E2B_API_KEY to a key of this server'):
        Sandbox.create(**server.options('a key that nobody has'))
    with pytest.raises(NotFoundException):
        Sandbox.connect(sandbox.sandbox_id, **server.options(KEYS[1]))
    assert not Sandbox.kill(sandbox.sandbox_id, **server.options(KEYS[1]))
    assert Sandbox.list(**server.options(KEYS[1])).next_items() == []


async def test_the_token_of_a_sandbox_opens_this_sandbox_and_nothing_else(server: Server, sandbox: Sandbox) -> None:
    other = Sandbox.create(**server.options(KEYS[1]))
    token = Sandbox.connect(sandbox.sandbox_id, **server.options()).traffic_access_token or ''
    named = {'E2b-Sandbox-Id': sandbox.sandbox_id}
    theirs = {'E2b-Sandbox-Id': other.sandbox_id, 'X-Access-Token': token}
    async with httpx2.AsyncClient(base_url=server.url) as http:
        assert (await http.get('/health', headers={**named, 'X-Access-Token': token})).status_code == 204
        assert (await http.get('/health', headers=named)).status_code == 401
        for path in ('/health', '/files?path=x', '/contexts'):
            assert (await http.get(path, headers=theirs)).status_code == 401
        assert (await http.post('/process.Process/List', headers=theirs, json={})).status_code == 401
        for path in ('/v2/sandboxes', f'/sandboxes/{sandbox.sandbox_id}', '/v1/sandboxes'):
            with_token = {'X-Access-Token': token, 'X-API-Key': token, 'Authorization': f'Bearer {token}'}
            assert (await http.get(path, headers={**named, **with_token})).status_code == 401
        key = {**named, 'X-API-Key': KEYS[0]}  # which manages sandboxes, and does not use them
        assert (await http.get('/health', headers=key)).status_code == 401
    other.kill()


def test_too_many_sandboxes_are_refused_until_one_is_killed(server: Server, sandbox: Sandbox) -> None:
    made = [Sandbox.create(**server.options()) for _ in range(4)]
    with pytest.raises(RateLimitException, match='too many sandboxes'):
        Sandbox.create(**server.options())
    for each in made:
        each.kill()
    assert Sandbox.create(**server.options()).kill()


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        ({'template': 'of-a-friend'}, "404: there is no template 'of-a-friend': this server has one system"),
        ({'volume_mounts': {'/data': 'mine'}}, '400: this server has no identities and no volumes'),
    ],
)
def test_what_the_server_has_not_is_refused(server: Server, settings: dict[str, object], message: str) -> None:
    with pytest.raises(SandboxException, match=message):
        Sandbox.create(**settings, **server.options())


def test_what_the_server_cannot_do_is_said(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxException, match='501: this server cannot do that'):
        sandbox.pause()
    with pytest.raises(SandboxException, match='this server has commands, and no terminals'):
        sandbox.pty.create(size=PtySize(24, 80))
