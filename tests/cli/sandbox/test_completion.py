"""The Tab key completes what is in the sandbox."""

from habilis.cli.sandbox.completion import Completer
from habilis.sandbox.session import SyncSandbox
from tests.cases import each_case
from tests.cli.process import on_terminal


@each_case(
    ('text', 'line', 'some'),
    [
        ('tot', 'print(tot', ['total']),
        ('text.upp', 'text.upp', ['text.upper']),
        ('imp', 'imp', ['import']),
        ('stat', 'import stat', ['stat', 'statistics']),
        ('re', ':re', ['restore']),
        ('', '  ', ['    ']),
        ('', 'x = ', []),
        ('f().a', 'f().a', []),
        ('missing.a', 'missing.a', []),
    ],
)
def test_candidates(text: str, line: str, some: list[str]) -> None:
    with SyncSandbox.create() as box:
        box.run("total = 1\ntext = 'a'")

        def evaluate(expression: str) -> object:
            return box.run(expression).value

        completer = Completer(evaluate)
        assert completer.candidates(text, line) == some
        assert completer.complete(text, len(some), line=line) is None


def test_a_name_is_completed_at_the_prompt() -> None:
    with on_terminal('sandbox', 'repl') as terminal:
        terminal.wait_for('>>> ')
        terminal.type('remarkable = 40\n')
        terminal.wait_for('>>> ')
        terminal.type('remark\t+ 2\n')
        terminal.wait_for('42\n')
