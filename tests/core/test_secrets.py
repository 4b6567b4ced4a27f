"""Keys of all kinds are found in text, in linear time, and nothing else is taken for one."""

import base64
import hashlib
import json
import random
import string
import time
import uuid

from hypothesis import given
from hypothesis import strategies as st

from habilis.core.secrets import HIDDEN, redact
from tests.cases import each_case


def random_text(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Always the same for the same length. Has letters and digits. Made here, so that no file contains a key."""
    pick = random.Random(length)
    return 'a1' + ''.join(pick.choice(alphabet) for _ in range(length - 2))


def encoded(data: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip('=')


JWT = f'{encoded({"alg": "HS256", "typ": "JWT"})}.{encoded({"sub": "1234567890", "name": "Eve"})}.{random_text(43)}'
KEYS = {
    'openai': f'sk-proj-{random_text(48)}',
    'openai old': f'sk-{random_text(48)}',
    'anthropic': f'sk-ant-api03-{random_text(90)}',
    'openrouter': f'sk-or-v1-{random_text(64)}',
    'groq': f'gsk_{random_text(52)}',
    'xai': f'xai-{random_text(80)}',
    'hugging face': f'hf_{random_text(34)}',
    'github': f'ghp_{random_text(36)}',
    'github app': f'ghs_{random_text(36)}',
    'github fine-grained': f'github_pat_{random_text(22)}_{random_text(59)}',
    'gitlab': f'glpat-{random_text(20)}',
    'slack bot': f'xoxb-{random_text(12, string.digits)}-{random_text(24)}',
    'slack app': f'xapp-1-{random_text(11)}-{random_text(40)}',
    'google': f'AIza{random_text(35)}',
    'google oauth': f'ya29.{random_text(60)}',
    'aws': 'AKIA' + random_text(16).upper(),
    'stripe': f'sk_live_{random_text(24)}',
    'stripe test': f'rk_test_{random_text(24)}',
    'npm': f'npm_{random_text(36)}',
    'pypi': f'pypi-AgEIcHlwaS5vcmc{random_text(60)}',
    'sendgrid': f'SG.{random_text(22)}.{random_text(43)}',
    'jwt': JWT,
    'jwe': '.'.join([encoded({'alg': 'RSA-OAEP', 'enc': 'A256GCM'}), *map(random_text, (40, 16, 30, 22))]),
    'unsigned jwt': f'{encoded({"alg": "none"})}.{encoded({"sub": "1"})}.',
}
AROUND = ['{}', 'key={} and more', '"{}"', "os.environ['KEY'] = '{}'", '{{"a": ["{}"]}}', 'a\n{}\nb', '({}).', 'x:{},y']


@each_case('name', KEYS)
@each_case('around', AROUND)
def test_a_key_is_hidden_wherever_it_is(name: str, around: str) -> None:
    key = KEYS[name]
    text = redact(around.format(key))
    assert HIDDEN in text
    assert key.rstrip('.') not in text
    assert key[-12:] not in text
    assert redact(text) == text


@each_case(
    ('text', 'secret'),
    [
        ('Authorization: Bearer {}', random_text(30)),
        ("headers = {{'Authorization': 'Bearer {}'}}", random_text(12)),
        ('authorization: token {}', random_text(40)),
        ('curl -H "Authorization: Basic {}"', base64.b64encode(b'user:pass-word').decode()),
        ('Basic {}', base64.b64encode(b'admin:hunter22').decode()),
        ('postgresql://habilis:{}@db.example.com/x', 'pa55-word'),
        ('https://me:{}@host/v1', 'geheim'),
        ('aws_secret_access_key = {}', random_text(40)),
        ('AWS_SECRET_ACCESS_KEY={}', random_text(40)),
        ('{{"client_secret": "{}"}}', random_text(32)),
        ('{{\\"refresh_token\\": \\"{}\\"}}', random_text(32)),
        ('AccountKey={};EndpointSuffix=x', random_text(86) + '=='),
        ('https://hooks.slack.com/services/{}', f'T{random_text(8)}/B{random_text(8)}/{random_text(24)}'),
        ('api_key: {}', 'abc'),
        ('?api_key={}&x=1', 'abcdef'),
    ],
)
def test_a_secret_is_known_by_what_is_before_it(text: str, secret: str) -> None:
    hidden = redact(text.format(secret))
    assert secret not in hidden
    assert hidden == text.format(HIDDEN)


def pem(kind: str, *, headers: str = '', body: str = random_text(64)) -> str:
    begin, end = f'-----BEGIN {kind}-----', f'-----END {kind}-----'
    lines = [body, random_text(63) + '/', random_text(62) + '+A', 'c2VjcmV0==']
    return '\n'.join([begin, *([headers, ''] if headers else []), *lines, end])


KINDS = [
    *('PRIVATE KEY', 'ENCRYPTED PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY', 'DSA PRIVATE KEY'),
    *('OPENSSH PRIVATE KEY', 'PGP PRIVATE KEY BLOCK'),
]


@each_case('kind', KINDS)
def test_private_keys_are_hidden_in_every_form(kind: str) -> None:
    key = pem(kind, headers='Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF' if kind.startswith('RSA') else '')
    secret = random_text(64)
    once = json.dumps(key)
    for text in (key, key.replace('\n', '\r\n'), once, json.dumps({'code': once}), repr(key), key.replace('\n', ' ')):
        assert redact(f'before {text} after').replace('"', '').replace("'", '').strip('\\{} ').startswith('before')
        hidden = redact(f'before {text} after')
        assert secret[:20] not in hidden
        assert 'PRIVATE KEY' not in hidden
        assert hidden.startswith('before ')
        assert hidden.endswith(' after')


def test_a_private_key_that_is_cut_off_is_hidden_as_far_as_it_goes() -> None:
    key = pem('RSA PRIVATE KEY')
    start, end = key[:150], key[60:]
    assert redact(f'a {start}') == f'a {HIDDEN}'
    assert redact(f'a {start}\n\nHere is how it goes on, in words.') == f'a {HIDDEN}Here is how it goes on, in words.'
    assert redact(f'it was: {end}\nThat was it.') == f'it was: {HIDDEN}\nThat was it.'
    assert redact(f'{key}\nand\n{key}') == f'{HIDDEN}\nand\n{HIDDEN}'


@each_case(
    'text',
    [
        'a task: none of sk-learn, sk-learn-contrib, hf_hub, hf_hub_download_from_a_repository and api keys is secret',
        'Basic arithmetic and Basic understanding of the bearer of this letter; Bearer bonds.',
        'The token is a word. token = tokens[i]; password = input("password: "); secret: str',
        "{'token': 'tokenization', 'tokens': 123, 'max_tokens': 1024, 'access_token_count': 12}",
        'https://host/path?x=1 and http://localhost:8000/v1 and me@example.com and 12:30:45',
        'ghost_writer github_action npm_config_registry pypi-publish-action xoxo',
        f'{uuid.UUID(int=0x1234567890ABCDEF1234567890ABCDEF)} "etag": "{hashlib.md5(b"z").hexdigest()}"',
        f'git commit {hashlib.sha1(b"x").hexdigest()} sha256:{hashlib.sha256(b"y").hexdigest()}',
        f'data:image/png;base64,{base64.b64encode(bytes(range(200))).decode()}',
        pem('CERTIFICATE'),
        pem('PUBLIC KEY'),
        'def tokenize(text: str) -> list[str]:\n    return text.split()\n',
        'total = 12345678901234567890123456789012345678901234567890',
        'run-4b32815fe658 local:qwen2.5-coder-1.5b anthropic:claude-sonnet-5-5',
        'eyJhbGciOiJIUzI1NiJ9',
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


@given(st.uuids(), st.binary(min_size=32, max_size=32))
def test_uuids_and_hashes_are_left_alone(one: uuid.UUID, data: bytes) -> None:
    for text in (str(one), one.hex, data.hex(), hashlib.sha512(data).hexdigest()):
        assert redact(f'id: {text}, {text}') == f'id: {text}, {text}'


HOSTILE = [
    *(
        'sk-',
        'sk-a',
        'Bearer ',
        'bearer\t',
        'Basic ',
        'token=',
        'secret_',
        'password: "',
        'authorization: a ',
        'api_key: ',
    ),
    *('eyJ', 'eyJaaaaaaaaaaaa.', 'SG.aaaaaaaaaaaaaaaaaaaa.', 'a://', 'a://b:', 'x-api-key', ' ', '-', 'A', '=', '\\n'),
    *('-----BEGIN PRIVATE KEY-----', '-----END PRIVATE KEY-----', '-----BEGIN ', 'PRIVATE KEY', 'Proc-Type:'),
    'AAAAAAAAAAAAAAAAA\n',
]


@each_case('unit', HOSTILE)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """Eight times the text takes about eight times as long, not sixty-four times."""

    def seconds(length: int) -> float:
        text = '-----BEGIN PRIVATE KEY-----' + unit * (length // len(unit)) + ' PRIVATE KEY'
        best = 60.0
        for _ in range(2):
            started = time.process_time()
            redact(text)
            best = min(best, time.process_time() - started)
        return best

    assert seconds(160_000) < 32 * max(seconds(20_000), 0.001)
