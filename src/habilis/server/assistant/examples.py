"""Examples for a person who has read nothing, and a script that answers them where there is no model yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel


@dataclass(frozen=True, kw_only=True)
class Example:
    """A message that shows something, and what a model may reply."""

    message: str
    replies: Sequence[str]


_CAPABILITIES = """I answer by writing Python, which runs in a sandbox. For instance, I can look at text:
```python
from collections import Counter

letters = Counter('the quick brown fox jumps over the lazy dog'.replace(' ', ''))
print(letters.most_common(3), len(letters), 'letters in all')
```"""

_DICE = """I simulate the throws.
```python
import random
from collections import Counter

sums = Counter(random.randint(1, 6) + random.randint(1, 6) for _ in range(10_000))
for total in sorted(sums):
    print(f'{total:>2} {sums[total]:>5} {"#" * (sums[total] // 50)}')
```"""

_FRIDAYS = """I go through the months.
```python
from datetime import date

year = date.today().year
days = [date(y, m, 13) for y in range(year, year + 10) for m in range(1, 13)]
fridays = [day for day in days if day.weekday() == 4]
print(*fridays, sep='\\n')
```"""

EXAMPLES = (
    Example(
        message='What can you do? Show me with a small example.',
        replies=(_CAPABILITIES, 'The sentence has **all 26 letters**. Drop a file here, and I work on that.'),
    ),
    Example(
        message='Simulate 10,000 throws of two dice and show how often each sum comes.',
        replies=(_DICE, 'Seven comes most often: **about one throw in six**.'),
    ),
    Example(
        message='Which dates in the next ten years are a Friday the 13th?',
        replies=(_FRIDAYS, 'These are the dates. **Every year has at least one.**'),
    ),
)


def example_model(advice: str) -> ScriptedModel:
    """Answers the examples from a script, and everything else with how to get a model."""
    return ScriptedModel(lambda messages: reply_to(messages, advice), name='scripted:examples')


def reply_to(messages: Sequence[Message], advice: str) -> str:
    """The next reply to the last message of a person."""
    last = max(number for number, message in enumerate(messages) if message.role == 'user' and not message.by_agent)
    given = sum(message.role == 'assistant' for message in messages[last:])
    for example in EXAMPLES:
        if example.message in messages[last].text:  # the loop adds the date and what the memory has
            return example.replies[given]
    return f'There is no language model yet, so only the examples are answered, from a script: {advice}.'
