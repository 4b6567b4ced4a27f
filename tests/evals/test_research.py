"""The questions about the generated site need two to four pages each, and only a sourced answer counts."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from evals.research.__main__ import is_solved, measure, summary
from evals.research.site import make_site
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from habilis.research.contract import ArchivedPage, Citation, Report, Section


def test_there_are_30_questions_and_each_answer_is_on_its_last_page_only() -> None:
    site = make_site()
    assert site == make_site()
    assert site != make_site(2)
    assert Counter(len(one.pages) for one in site.questions) == {2: 10, 3: 10, 4: 10}
    for question in site.questions:
        holding = [name for name, text in site.pages.items() if re.search(rf'\b{question.answer}\b', text)]
        assert question.pages[-1] in holding
        assert not set(question.pages[:-1]) & set(holding)
        assert question.answer not in question.text


def test_an_answer_counts_only_in_a_sentence_that_cites_its_page() -> None:
    question = make_site().questions[0]
    page = ArchivedPage(url=f'file:///x/{question.pages[-1]}', title='', digest='d', accessed='2026-11-18')
    right = Report(
        title='',
        sections=(Section(place=(1,), title='', text=f'It was in {question.answer} [s101].'),),
        sources=(page,),
        citations=(Citation(id='s101', source=1, quote=''),),
    )
    assert is_solved(question, right)
    assert not is_solved(question, replace(right, sources=(replace(page, url='file:///x/other.md'),)))
    for text in (f'{question.answer}1 [s101].', f'{question.answer}. It was so [s101].', 'It was so [s101].'):
        assert not is_solved(question, replace(right, sections=(Section(place=(1,), title='', text=text),)))


async def test_a_model_that_follows_the_pages_solves_the_questions() -> None:
    site = make_site()

    def scholar(messages: Sequence[Message]) -> str:
        prompt = messages[-1].text
        if 'are open now' in prompt:
            known = re.findall(r'founded by (\w+ \w+)', prompt)
            return f'- When was {known[0]} born? | a year' if known else '- Who founded the Works? | a name'
        if 'next search query' in prompt:
            return prompt.partition('Sub-goal: ')[2].partition('\n')[0] + prompt.partition('research: ')[2][:80]
        if 'Which lines help' in prompt:
            name = re.findall(r'founder of (\w+)|When was \w+ (\w+)', goal_of(prompt) + site.questions[0].text)
            wanted = [word for pair in name for word in pair if word]
            lines = re.findall(r'^(L\d+): (.*)', prompt, re.MULTILINE)
            return ' '.join(id_ for id_, text in lines if any(word in text for word in wanted)) or 'none'
        if 'Write the outline' in prompt:
            return '# Answer\n## Birth'
        if 'Divide this section' in prompt:
            return 'none'
        notes = re.findall(r'^\[(s\d+)\] "(.*)"$', prompt, re.MULTILINE)
        return '\n\n'.join(f'{text.replace(". ", ", ").strip("# .")} [{id_}].' for id_, text in notes) or 'missing'

    def goal_of(prompt: str) -> str:
        return prompt.partition('Goal: ')[2].partition('\n')[0]

    [result] = await measure(site, site.questions[:1], ScriptedModel(scholar), 'medium')
    assert result.solved
    assert result.cited == result.needed == 2
    assert result.quotes == result.citations
    assert result.invented == 0
    assert '1 of 1' in summary([result])
