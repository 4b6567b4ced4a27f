"""The questions about the memory are many, of all kinds, the same every time, and most are answered."""

from collections import Counter

from evals.memory.__main__ import measure
from evals.memory.chats import make


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
