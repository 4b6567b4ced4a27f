"""`habilis runs keep`: finished runs become a tool."""

from pathlib import Path

from habilis.forge.library.library import Library
from tests.cli.chat import code
from tests.cli.process import habilis
from tests.cli.runs.making import make, runs
from tests.place import Place

SHARE = """bill = {bill}
tip = {tip}
friends = {friends}
total = bill * (1 + tip / 100)
print(total)"""
END = 'share = total / friends\nfinal_answer(round(share, 2))'


def share(place: Place, bill: float, tip: int, friends: int) -> str:
    """A run that computes a share in two steps."""
    task = f'{friends} friends pay {bill} and a tip of {tip} percent. What does each pay?'
    return make(place, code(SHARE.format(bill=bill, tip=tip, friends=friends)), code(END), task=task)


def test_runs_that_did_the_same_become_a_tool_with_parameters_where_they_differ(place: Place, tmp_path: Path) -> None:
    where = ('--library', str(tmp_path / 'library'))
    first, second = share(place, 87.4, 10, 4), share(place, 152.35, 12, 7)
    done = runs('keep', first, second, '--name', 'share_of_bill', *where)
    assert done.stdout == (
        'share_of_bill(bill: float, tip: int, friends: int) -> float\n'
        'share_of_bill: version 1 is in use; it passes 2 tests\n'
    ), done.stderr
    assert habilis('tools', 'run', 'share_of_bill', '200', '5', '3', *where).stdout == '70.0\n'
    made = Library(tmp_path / 'library').manifest('share_of_bill')
    assert (made.origin, made.killed) == ('run', made.mutants)
    [found, *_] = habilis('tools', 'search', 'what does each of the friends pay?', *where).stdout.splitlines()[1:]
    assert 'share_of_bill' in found


def test_values_of_a_rule_have_defaults_in_the_tool_of_one_run(place: Place, tmp_path: Path) -> None:
    where = ('--library', str(tmp_path / 'library'))
    program = 'grams = 480\nprice = 2 if grams <= 500 else 5\nfinal_answer(price)'
    run = make(place, code(program), task='A letter costs 2 up to 500 g, and 5 above. What does one of 480 g cost?')
    done = runs('keep', run, '--name', 'postage', '--note', 'the answer is right', *where)
    assert done.stdout.startswith('postage(grams: int, value: int=500, value_2: int=2, value_3: int=5) -> int\n')
    assert habilis('tools', 'run', 'postage', '700', *where).stdout == '5\n'


def test_a_function_of_the_run_gives_the_tool_its_name_and_parameters(place: Place, tmp_path: Path) -> None:
    where = ('--library', str(tmp_path / 'library'))
    program = """
def postage(grams):
    if grams <= 500:
        price = 2
    else:
        price = 5
    return price

final_answer(postage(480))"""
    run = make(place, code(program), task='A letter costs 2 up to 500 g, and 5 above. What does one of 480 g cost?')
    done = runs('keep', run, '--note', 'the answer is right', *where)
    assert done.stdout.startswith('postage(grams: int, value: int=500, value_2: int=2, value_3: int=5) -> int\n')
    assert habilis('tools', 'run', 'postage', '700', *where).stdout == '5\n'


def test_runs_that_did_something_else_or_have_no_answer_of_code_are_refused(place: Place, tmp_path: Path) -> None:
    where = ('--library', str(tmp_path / 'library'))
    first, other = share(place, 87.4, 10, 4), make(place, code('final_answer(6 * 7)'), task='What is six times seven?')
    assert 'did not do the same' in runs('keep', first, other, *where).stderr
    assert 'nothing that varies' in runs('keep', other, *where).stderr
    said = make(place, 'It is 42.')
    assert 'has no answer that was computed by code' in runs('keep', said, *where).stderr
    assert not (tmp_path / 'library').exists()


def test_a_run_that_cannot_be_repeated_is_refused_by_the_gates_of_all_tools(place: Place, tmp_path: Path) -> None:
    guess = make(place, code('import random\nfinal_answer(random.random() + 3)'), task='Add 3 to a random number.')
    done = runs('keep', guess, '--library', str(tmp_path / 'library'))
    assert done.returncode == 1
    assert 'fail' in done.stderr
