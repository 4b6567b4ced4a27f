"""One row that stands for all is found in the code, and mended where it can be."""

import pytest

from habilis.agent.picking import Picking

TABLE = 'day,place,units\n2024-02-02,north,3\n2024-02-14,south,4\n2024-03-01,north,5\n'
QUESTION = 'How many units were sold in February 2024?'


@pytest.mark.parametrize(
    ('condition', 'mended'),
    [
        ("row['day'] == '2024-02-02'", "row['day'].startswith('2024-02')"),
        ("row['place'] == 'south' and row['day'] == '2024-02-14'", "row['day'].startswith('2024-02')"),
        ("row['place'] == 'south' and row['day'] > '2024-02'", "row['day'] > '2024-02'"),
        (
            "row['units'] > 1 and row['place'] == 'south' and row['units'] < 9",
            "row['units'] > 1 and row['units'] < 9",
        ),
        ("row['place'] == 'south'", None),  # nothing would be left
        ("row['place'] == 'south' or row['day'] == '2024-02-14'", None),
        ("row['day'].startswith('2024-02')", None),
    ],
)
def test_conditions_that_nobody_asked_for_are_mended(condition: str, mended: str | None) -> None:
    code = 'n = sum([row["units"] for row in rows if {}])\nfinal_answer(n)'
    expected = None if mended is None else code.format(mended).replace('"', "'")
    assert Picking(QUESTION, TABLE).mended(code.format(condition)) == expected


def test_a_day_is_a_day_where_no_month_is_asked_about() -> None:
    code = "final_answer(sum([row['day'] == '2024-02-02' for row in rows]))"
    assert Picking('How many rows are there on the first day?', TABLE).mended(code) is None
    assert Picking('How many rows are there on the first day?', TABLE).found(code) == ["row['day']"]
    assert Picking('How many rows are there on 2024-02-02?', TABLE).found(code) == []


@pytest.mark.parametrize('terms', [10, 300, 600, 900, 3000, 100_000])
def test_code_that_is_very_deep_does_no_harm(terms: int) -> None:
    code = f"n = [row for row in rows if row['day'] == '2024-02-02']\nx = {' + '.join(['1'] * terms)}"
    mended = Picking(QUESTION, TABLE).mended(code)
    assert mended is None if terms > 500 else "startswith('2024-02')" in (mended or '')


def test_a_very_deep_comparison_does_no_harm() -> None:
    code = f"final_answer({' + '.join(['x'] * 700)} == '2024-02-02')"
    assert Picking(QUESTION, TABLE).found(code) == []


@pytest.mark.parametrize('code', ['', 'x = (', "x == ''", "x == 'no'", "'south' == x", "x != 'south'", "x == b'south'"])
def test_other_code_is_left_alone(code: str) -> None:
    picking = Picking(QUESTION, TABLE)
    assert (picking.found(code), picking.mended(code)) == ([], None)
