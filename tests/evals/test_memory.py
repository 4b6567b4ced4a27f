"""The questions about the memory are many, of all kinds, the same every time, and most are answered."""

import json
from collections import Counter
from pathlib import Path

from evals.memory.__main__ import measure, measure_public
from evals.memory.chats import make
from evals.memory.public import read_sets


def test_there_are_at_least_300_questions_of_nine_kinds() -> None:
    chats = make()
    assert chats == make()
    assert len(chats.questions) >= 300
    assert len({question.text for question in chats.questions}) == len(chats.questions)
    assert len(Counter(question.kind for question in chats.questions)) == 9
    said = Counter(turn.text for turn in chats.turns)
    assert all(said[text] == 1 for question in chats.questions for text in question.gold)


async def test_words_find_what_was_said_with_the_same_words() -> None:
    rows, _ = await measure(make(), None)
    recalls = {row.kind: row.recall_10 for row in rows}
    assert min(recalls[kind] for kind in ('names', 'numbers', 'dates', 'updates', 'contradictions')) >= 0.9
    assert min(recalls[kind] for kind in ('when did I', 'answers', 'never said')) >= 0.85


async def test_a_public_set_is_measured_by_turns_and_sessions(tmp_path: Path) -> None:
    said = [('a', 'Ann', 'I adopted a cat called Miso'), ('b', 'Bob', 'Nice weather'), ('b', 'Bob', 'The bus was late')]
    turns = [{'session': s, 'role': r, 'text': t, 'time': n, 'id': str(n)} for n, (s, r, t) in enumerate(said)]
    asked: list[dict[str, object]] = [
        {'kind': 'pets', 'text': "What is the name of Ann's cat?", 'gold': ['0']},
        {'kind': 'trips', 'text': 'Who flew to Rome?', 'gold': ['2']},
        {'kind': 'trips', 'text': 'never', 'gold': []},
    ]
    (tmp_path / 'tiny.jsonl').write_text(json.dumps({'turns': turns, 'questions': asked}))
    [(name, conversations)] = read_sets(tmp_path)
    rows = await measure_public(conversations, None)
    found = {row.kind: (row.questions, row.recall_10) for row in rows}
    assert (name, found) == ('tiny', {'pets': (1, 1.0), 'all': (2, 0.5), 'trips': (1, 0.0), 'sessions': (2, 0.5)})
