"""Tasks of the demos, their expected answers and scripted replies. A model of 1.5B parameters can solve them."""

from collections.abc import Sequence
from dataclasses import dataclass

MAKER, READER = 'maker', 'reader'
NOTE = 'note.txt'
NOTE_TEXT = 'made in one sandbox, read in another'
PRIMES = 'primes.txt'
PRIMES_BELOW_30 = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


@dataclass(frozen=True, kw_only=True)
class Demo:
    """One demo."""

    number: int
    title: str
    task: str
    expected: object
    """The correct answer."""

    scripted: Sequence[str]
    """Replies of a scripted model that solves the task."""

    scripted_plan: Sequence[str] = ()
    """Replies of the scripted planner."""


_TWO_SANDBOXES = f"""Do these steps in one block of code:
1. Write the text {NOTE_TEXT!r} to the file {NOTE!r}.
2. Call copy_file({NOTE!r}, {MAKER!r}, {READER!r}).
3. Call run_in({READER!r}, "print(open({NOTE!r}).read())"). It returns what the other sandbox reads.
4. Call final_answer with that text."""

_COMPUTE = """I compute it.
```python
total = sum(n * n for n in range(1, 101))
print(total)
```"""

_WRITE_AND_COPY = f"""```python
with open({NOTE!r}, 'w') as file:
    file.write({NOTE_TEXT!r})
print(copy_file({NOTE!r}, {MAKER!r}, {READER!r}))
```"""

_READ_COPY = f"""```python
text = run_in({READER!r}, "print(open({NOTE!r}).read())")
final_answer(text)
```"""

_PLAN = f"""1. Find the primes below 30 by trial division.
2. Write them to {PRIMES}, one on each line.
3. Give their sum as the answer."""

_IMPLEMENT = f"""```python
primes = [n for n in range(2, 30) if all(n % d for d in range(2, n))]
with open({PRIMES!r}, 'w') as file:
    file.write('\\n'.join(map(str, primes)))
final_answer(sum(primes))
```"""

DEMOS = (
    Demo(
        number=1,
        title='one model, one sandbox',
        task='What is the sum of the squares of the whole numbers from 1 to 100?',
        expected=sum(n * n for n in range(1, 101)),
        scripted=(_COMPUTE, '```python\nfinal_answer(total)\n```'),
    ),
    Demo(
        number=2,
        title='one model, two sandboxes',
        task=_TWO_SANDBOXES,
        expected=NOTE_TEXT,
        scripted=(_WRITE_AND_COPY, _READ_COPY),
    ),
    Demo(
        number=3,
        title='two models, one sandbox',
        task=f'Write all primes below 30 to the file {PRIMES!r}, one on each line. The answer is their sum.',
        expected=sum(PRIMES_BELOW_30),
        scripted=(_IMPLEMENT,),
        scripted_plan=(_PLAN,),
    ),
)
