"""What a small model writes over one of its tools is left out."""

import pytest

from habilis.agent.parsing.shadows import without_shadows


def test_a_definition_over_a_tool_goes_and_the_lines_keep_their_numbers() -> None:
    code = 'x = 1\n@cache\ndef final_answer(value):\n    print(value)\n\nfinal_answer(x)'
    assert without_shadows(code, {'final_answer'}) == 'x = 1\n\n\n\n\nfinal_answer(x)'


def test_other_definitions_stay_and_so_does_what_is_not_python() -> None:
    code = 'def area(r):\n    def final_answer(): ...\n    return r'
    assert without_shadows(code, {'final_answer'}) == code
    assert without_shadows('def (', {'final_answer'}) == 'def ('


def test_a_long_literal_over_a_text_of_the_user_goes_and_a_short_one_stays() -> None:
    typed = 'rows = """\n' + 'a,b\n' * 20 + '"""\nprint(rows)'
    assert without_shadows(typed, (), ['rows']) == '\n' * 22 + 'print(rows)'
    assert without_shadows(typed, (), ['other']) == typed
    assert without_shadows('rows = "new"', (), ['rows']) == 'rows = "new"'


@pytest.mark.parametrize(
    ('code', 'left'),
    [
        ('from price import price\nprint(price(1))', '\nprint(price(1))'),
        ('from tools.shop import (\n    price,\n    stock,\n)\nprice(1)', '\n\n\n\nprice(1)'),
        ('import price\nprice(1)', '\nprice(1)'),
        ('from shop import price as p, stock\np(1)', 'p = price\np(1)'),
        ('price = lambda item: 20\nprice(1)', '\nprice(1)'),
    ],
)
def test_imports_of_tools_from_made_up_modules_go(code: str, left: str) -> None:
    assert without_shadows(code, {'price', 'stock'}) == left


@pytest.mark.parametrize(
    'code',
    [
        'from datetime import date',
        'import calendar',
        'from shop import price, other',
        'import price as p',
        'from . import price',
        'x = 1; from shop import price',
        'price = 3',
    ],
)
def test_what_may_be_meant_stays(code: str) -> None:
    assert without_shadows(code, {'price', 'date', 'calendar'}) == code
