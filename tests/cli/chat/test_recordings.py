"""Whole chats in a real terminal, at the widths that people have."""

import os
import signal
from pathlib import Path

import pytest

from habilis.assistant.shared_folders import remember_share
from tests.cli.chat import code, script
from tests.cli.process import Terminal, habilis, on_terminal
from tests.place import Place

SALES = 'region,revenue\nnorth,120\nsouth,80\nnorth,40\n'
LOAD = """\
import csv, collections
revenue = collections.Counter()
for row in csv.DictReader(open('sales.csv')):
    revenue[row['region']] += int(row['revenue'])"""
PLOT = """\
class Plot:
    def _repr_png_(self): return b'\\x89PNG plot'
display(Plot())
final_answer(f'North has {revenue["north"]}, south {revenue["south"]}.')"""
EDIT = """\
write_file('report.py', 'total = 240\\nprint(total)\\n')
write_file('report.py', 'total = 241\\nprint(total)\\n')
final_answer('Written.')"""
PLAN = '1. Read `sales.csv`.\n2. Write `plan.txt`.'
LATE = "print('once')\nupdate_file('report.py', '241', '242')\nfinal_answer('Counted.')"
CARRY_OUT = "write_file('plan.txt', 'done\\n')\nfinal_answer('Carried out.')"


@pytest.fixture
def project(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder with data and instructions, which nobody was asked about yet."""
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    monkeypatch.setenv('EDITOR', "sed -i 's/plan.txt/plan.md/'")
    remember_share(place.folder, None)
    (place.folder / 'sales.csv').write_text(SALES)
    (place.folder / 'AGENTS.md').write_text('Money is in euros.\n')
    return place.folder


def say(terminal: Terminal, words: str, *shown: str) -> None:
    terminal.type(f'{words}\r')
    for text in shown:
        terminal.wait_for_row(text)


@pytest.mark.parametrize('columns', [60, 80, 140])
def test_a_new_folder_is_shared_its_data_plotted_an_edit_approved_a_plan_carried_out_and_the_chat_resumed(
    columns: int, project: Path, place: Place
) -> None:
    place.environment(HABILIS_MODEL=script(project, 'Fed.'))
    habilis('chat', stdin='Feed the cat.\n')
    replies = [code(LOAD), code(PLOT), code(EDIT), PLAN, code(CARRY_OUT), code(LATE)]
    place.environment(HABILIS_MODEL=script(project, *replies))
    with on_terminal('chat', columns=columns) as terminal:
        terminal.wait_for_row('read, write or no?')
        say(terminal, 'write', 'instructions: AGENTS.md')
        say(terminal, 'Plot revenue per region.', 'North has 160, south 80.')
        assert sorted(path.name for path in project.glob('*.png')) == []
        say(terminal, 'Write a report.', 'May write_file be called?', 'report.py new, +2 −0', '1 + total = 240')
        say(terminal, 'always', 'changed 1 file: report.py new, +2 −0', '1 - total = 240', '1 + total = 241')
        say(terminal, '/plan Tidy up.', 'Carry out this plan?')
        say(terminal, 'edit', '2. Write `plan.md`.')
        say(terminal, 'y', 'changed 1 file: plan.txt new, +1 −0')
        say(terminal, 'Count again.', 'May update_file be called?')
        os.kill(terminal.process.pid, signal.SIGKILL)
        record(terminal, f'first-{columns}')
    second = script(project, code('final_answer(sum(revenue.values()))'), name='second')
    with on_terminal('--resume', '--model', second, columns=columns) as terminal:
        terminal.wait_for_row('Which one?')
        say(terminal, 'plot', 'May update_file be called?', '1 - total = 241', '1 + total = 242')
        say(terminal, 'y', 'Counted.')
        say(terminal, 'And the sum?', '> And the sum?', '240')
        terminal.type('q\r')
        assert terminal.exit_code() == 0
        assert sum(row == 'once' for row in terminal.read_all()) <= 1
        record(terminal, f'second-{columns}')
    assert (project / 'report.py').read_text() == 'total = 242\nprint(total)\n'


def record(terminal: Terminal, name: str) -> None:
    """Keep what was shown where `RECORDINGS` says, to look at it."""
    if folder := os.environ.get('RECORDINGS'):
        Path(folder, f'{name}.txt').write_text('\n'.join(terminal.rows))
