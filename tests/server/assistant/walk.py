"""The walk of a person who has read nothing: a dropped file, a plot, an approval, a tool, the memory, a fork.

The test takes it, and `screenshots.py` draws it. The model is a script; sandbox, forge, memory and journal are real.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from habilis.models.contract import Message
from tests.forge.build.test_forge import Builder

CSV = 'region,sales\nNorth,120\nSouth,80\nEast,45\nNorth,60\nWest,95\nSouth,30\n'
DROP = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, { type: 'text/csv' }));
  document.querySelector('.chat').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true }));
}"""

READ = """I read the file first.
```python
import csv
from collections import Counter

sales = Counter()
with open('/inputs/sales.csv') as file:
    for row in csv.DictReader(file):
        sales[row['region']] += int(row['sales'])
print(sales)
```"""
PLOT = """Now the plot, with green bars, as you like them.
```python
class Bars:
    def __init__(self, values):
        self.values = values

    def _repr_svg_(self):
        bars = ''.join(
            f'<g transform="translate({20 + 110 * place})"><rect y="{200 - value}" width="80" height="{value}" '
            f'fill="#2f6f4f"/><text x="40" y="{195 - value}">{value}</text><text x="40" y="218">{name}</text></g>'
            for place, (name, value) in enumerate(self.values)
        )
        style = 'font-family="sans-serif" font-size="14" text-anchor="middle"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="460" height="225" {style}>{bars}</svg>'

display(Bars(sales.most_common()))
```"""
ASK_FOR_TOOL = """There is no tool for that yet, so I have one built.
```python
make_tool('Percent of the total of each number in a list, rounded', ['percentages([1, 3]) == [25, 75]'])
```"""
USE_TOOL = """```python
shares = dict(zip(sales, percentages(list(sales.values()))))
print(shares)
```"""
SAVE = """I put the totals into your file.
```python
lines = [f'- {name}: {total}' for name, total in sales.most_common()]
write_file('summary.md', '# Sales\\n\\n' + '\\n'.join(lines) + '\\n')
```"""
TURNS = {
    'Plot the sales': [READ, PLOT, '**North** sells most: 180 of 430.'],
    'What share': [ASK_FOR_TOOL, USE_TOOL, 'North has **42 %** of the sales, East only 10 %.'],
    'Save the totals': [SAVE, 'The totals are in `summary.md`.'],
}
BUILDER = Builder(
    spec='```python\ndef percentages(numbers: list[int]) -> list[int]:\n'
    '    """Percent of the total of each number, rounded."""\n```',
    tests='```python\ndef test_two():\n    assert percentages([1, 3]) == [25, 75]\n\n'
    'def test_one():\n    assert percentages([7]) == [100]\n\n'
    'def test_rounded():\n    assert percentages([1, 2]) == [33, 67]\n\n'
    'def test_empty():\n    assert percentages([]) == []\n```',
    implement='```python\ndef percentages(numbers: list[int]) -> list[int]:\n'
    '    """Percent of the total of each number, rounded."""\n'
    '    total = sum(numbers)\n    return [round(100 * number / total) for number in numbers]\n```',
)


def reply(messages: Sequence[Message]) -> str:
    """What the model says: in a turn, or in a stage of the forge."""
    if messages[0].role != 'system':
        return BUILDER.reply(messages)
    last = max(number for number, message in enumerate(messages) if message.role == 'user' and not message.by_agent)
    given = sum(message.role == 'assistant' for message in messages[last:])
    return next(replies[given] for start, replies in TURNS.items() if messages[last].text.startswith(start))


def options(folder: Path) -> dict[str, Any]:
    """The options of the session: a folder to work in, and a library."""
    shared = folder / 'shared'
    shared.mkdir()
    (shared / 'summary.md').write_text('# Sales\n\nNothing yet.\n')
    return {'workspace': shared, 'library': folder / 'library'}


Look = Callable[[str, Locator], None]
"""Looks at a view, by its name; the part of it that matters is visible."""


def walk(page: Page, address: str, look: Look) -> None:
    """Take the walk, and look at each view."""
    page.goto(f'{address}/#/memory')
    page.get_by_label('Fact').fill('I like green bars in plots of sales.')
    page.get_by_label('Kind').select_option('preference')
    page.get_by_role('button', name='Remember').click()
    expect(page.get_by_label('Remembered')).to_contain_text('green bars')
    page.goto(f'{address}/#walk')
    expect(page.get_by_text('Answered by')).to_be_visible()
    look('start', page.get_by_role('heading'))

    page.evaluate(DROP, ['sales.csv', CSV])
    _say(page, 'Plot the sales of each region.', 'North sells most')
    expect(page.get_by_alt_text('Shown by step 2')).to_have_js_property('naturalWidth', 460)
    page.get_by_text('Memory used: 1').click()
    expect(page.get_by_role('listitem').filter(has_text='green bars')).to_contain_text('applies to every task')
    look('recall', page.get_by_text('Memory used: 1'))
    look('plot', page.get_by_text('180 of 430'))

    _say(page, 'What share of the sales has each region?', 'North has 42 %')
    look('build', page.get_by_label('Building a tool'))

    _say(page, 'Save the totals to summary.md.', 'May write_file be called?')
    expect(page.get_by_label('Question').locator('.added').filter(has_text='- North: 180')).to_be_visible()
    look('approval', page.get_by_label('Question'))
    page.get_by_role('button', name='Yes', exact=True).click()
    expect(page.get_by_text('The totals are in').last).to_be_visible()

    page.get_by_role('link', name='percentages').click()
    expect(page.get_by_label('Tools')).to_contain_text('1 call, 0 failed')
    look('tool', page.get_by_role('heading').first)
    page.goto(f'{address}/#walk')
    first = page.locator('.turn').filter(has_text='Plot the sales of each region.')
    first.get_by_role('link', name=re.compile('^run-')).click()
    page.get_by_role('button', name='1.').click()
    expect(page.get_by_label('Step 1', exact=True)).to_contain_text('Counter')
    look('run', page.get_by_role('heading').first)
    page.goto(f'{address}/#walk')
    first.get_by_label('Code of step 2').get_by_role('button', name='Fork').click()
    expect(page).not_to_have_url(f'{address}/#walk')
    answer = page.get_by_text('North sells most').last
    expect(answer).to_be_visible()
    look('fork', answer)
    for view, shown in {
        'runs': 'tokens',
        'fleet': 'Slowest',
        'memory': 'green bars',
        'settings': 'scripted:script',
    }.items():
        page.goto(f'{address}/#/{view}')
        expect(page.locator('.view')).to_contain_text(shown)
        look(view, page.get_by_role('heading').first)


def _say(page: Page, text: str, answer: str) -> None:
    page.get_by_label('Message').fill(text)
    page.get_by_label('Message').press('Enter')
    expect(page.get_by_text(answer).last).to_be_visible()
