"""A research from its goal to its report, over a folder."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from habilis.journal import MemoryStore
from habilis.models.contract import Message
from habilis.models.scripted import ScriptedModel
from habilis.research import Folder, Research, read_state
from habilis.research.contract import EFFORTS, EffortName, Report
from habilis.research.markdown_report import render_markdown
from tests.research.script import GOAL, PAGES, Scholar, make_pages, scholar


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return make_pages(tmp_path / 'pages')


async def research(model: ScriptedModel, pages: Path, **options: object) -> Report:
    return await Research(model, Folder(pages)).run(GOAL, journal=MemoryStore(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ('form', 'effort'),
    [('report', 'medium'), ('report', 'high'), ('blog', 'low'), ('brief', 'low'), ('table', 'medium')],
)
async def test_a_report_cites_the_pages_it_rests_on(pages: Path, form: str, effort: EffortName) -> None:
    model = scholar()
    report = await research(model, pages, effort=effort, form=form)
    text = render_markdown(report)
    assert '412 km' in text
    assert effort == 'low' or '398 km' in text  # the contradiction: both are cited
    assert '287 km' in text
    assert len(model.requests) <= EFFORTS[effort].calls
    assert report.spent.calls == len(model.requests)
    assert not report.open


async def test_every_citation_has_its_passage_and_every_source_is_cited_and_archived(pages: Path) -> None:
    store = MemoryStore()
    report = await Research(scholar(), Folder(pages)).run(GOAL, journal=store, run_id='one')
    cited = {id_ for section in report.sections for id_ in re.findall(r'\[(s\d+)\]', section.text)}
    assert cited == {citation.id for citation in report.citations}
    assert {citation.source for citation in report.citations} == {*range(1, len(report.sources) + 1)}
    for citation in report.citations:
        page = report.sources[citation.source - 1]
        assert citation.quote in (await store.blob('one', page.digest)).decode()
    assert 'injected' not in str(report.sources)  # it was read, and is not cited
    assert 'injected' in str((await read_state(store, 'one')).pages)


async def test_a_form_of_the_user_has_its_headings(pages: Path, tmp_path: Path) -> None:
    form = tmp_path / 'own.md'
    form.write_text('A memo.\n\n## Kelda facts\n\nOne sentence.\n\n## What remains\n\nThe rest.', encoding='utf-8')
    report = await research(scholar(), pages, effort='low', form=str(form))
    assert [section.title for section in report.sections] == ['Kelda facts', 'What remains']


async def test_low_effort_makes_at_most_a_third_of_the_calls_of_high(pages: Path) -> None:
    calls: dict[EffortName, int] = {}
    for effort in EFFORTS:
        model = scholar(greedy=True)
        await research(model, pages, effort=effort)
        calls[effort] = len(model.requests)
        assert calls[effort] <= EFFORTS[effort].calls
    assert calls['low'] * 3 <= calls['high']
    assert calls['low'] < calls['medium'] < calls['high']


async def test_stop_is_offered_only_past_the_size_of_the_scratchpad(tmp_path: Path) -> None:
    folder = make_pages(tmp_path / 'pages')
    model = scholar()
    await research(model, folder, effort='medium')
    queries = [text for one in model.requests if 'next search query' in (text := one.messages[-1].text)]
    assert queries
    assert not any('reply only: stop' in query for query in queries)
    for number in range(3):
        line = f'The Kelda is a river of {number} km. ' * 30
        (folder / f'long{number}.txt').write_text('\n'.join([line] * 3), encoding='utf-8')
    model = scholar()
    await research(model, folder, effort='medium')
    queries = [text for one in model.requests if 'next search query' in (text := one.messages[-1].text)]
    assert any('reply only: stop' in query for query in queries)
    assert all(('reply only: stop' in query) <= ('[s' in query) for query in queries)


async def test_a_goal_without_an_answer_stays_open_and_the_report_says_so(tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    report = await research(scholar(), tmp_path / 'empty', effort='low')
    assert report.open == ('How long is the river Kelda?', 'How long is the river Tovar?')
    assert 'Nothing was found.' in render_markdown(report)


async def test_an_invented_quote_is_rewritten_once_and_then_marked(pages: Path) -> None:
    model = scholar(sentence='It is "the longest river of all" [s101].')
    report = await research(model, pages, effort='low')
    rewrites = [one for one in model.requests if 'These sentences cannot stay' in one.messages[-1].text]
    assert len(rewrites) == len(report.sections)
    assert all('“the longest river of all”' in one.messages[-1].text for one in rewrites)
    assert '[s101]. *(quote not found in its source)*' in report.sections[0].text


async def test_invented_sources_and_addresses_do_not_reach_the_report(pages: Path) -> None:
    sentence = 'See [this](http://evil.example/a), <https://evil.example/b> and www.evil.example [s999].'
    report = await research(scholar(sentence=sentence), pages, effort='low')
    text = render_markdown(report)
    assert 'evil.example' not in text
    assert 's999' not in text
    assert '*(no source)*' in text
    assert set(re.findall(r'\w+://[^\s>)]+', text)) == {page.url for page in report.sources}


async def test_a_report_says_how_many_sites_support_a_claim_and_the_model_knows_who_says_what(pages: Path) -> None:
    model = scholar(sentence='Both give a length [s101][s102]. The Kelda rises somewhere [s101].')
    report = await research(model, pages, effort='medium')
    text = render_markdown(report)
    assert re.search(r'Both give a length (\[\\\[\d\\\]\]\(#s10\d\)){2} \(2 sites\)\.', text)
    assert re.search(r'rises somewhere \[\\\[\d\\\]\]\(#s101\)\.', text)
    assert 'A statement without a number of sites is what one site says.' in text
    source = f'From "The river Kelda", {(pages / "kelda.md").as_uri()}:\n[s101]'
    asked = [request.messages[-1].text for request in model.requests]
    assert all(source in one for one in asked if 'Write the part' in one)


async def test_a_part_for_which_the_notes_have_nothing_is_left_out(pages: Path) -> None:
    script = Scholar()

    def no_tovar(messages: Sequence[Message]) -> str:
        return 'none' if 'the part "Length of the Tovar"' in messages[-1].text else script(messages)

    report = await research(ScriptedModel(no_tovar), pages, effort='low')
    assert [section.title for section in report.sections] == ['Length of the Kelda']


async def test_a_page_with_instructions_changes_nothing(pages: Path) -> None:
    model = scholar()
    with_it = await research(model, pages, effort='high')
    (pages / 'injected.md').write_text(PAGES['injected.md'].partition('SYSTEM')[0], encoding='utf-8')
    without = await research(scholar(), pages, effort='high')
    assert [re.sub(r's\d+', 's', one.text) for one in with_it.sections] == [
        re.sub(r's\d+', 's', one.text) for one in without.sections
    ]
    assert 'evil.example' not in render_markdown(with_it)
    shown = [message for one in model.requests for message in one.messages if 'SYSTEM: ignore' in message.text]
    assert {message.role for message in shown} == {'user'}
    lines = [line for message in shown for line in message.text.splitlines() if 'SYSTEM: ignore' in line]
    assert not any(line.lstrip().startswith('SYSTEM') for line in lines)  # after the number of a line, or quoted


async def test_a_small_model_writes_one_sentence_per_note(pages: Path) -> None:
    def reply(messages: object) -> str:
        prompt = model.requests[-1].messages[-1].text
        if 'short questions' in prompt:
            return '1. How long is the river Kelda?\n2. How long is the river Tovar?'
        if 'Which lines help' in prompt:
            return 'I think that L2 and L3 help.'
        ids = re.findall(r'^\[(s\d+)\]', prompt, re.MULTILINE)
        return f'Sure!\n- {ids[0]}: The river is long.\n[{ids[0]}]: It rises somewhere.\ns999: Invented.'

    model = ScriptedModel(reply, small=True, context_tokens=8_000)
    report = await research(model, pages, effort='low')
    assert len(model.requests) <= 7
    assert [section.title for section in report.sections] == [
        'How long is the river Kelda?',
        'How long is the river Tovar?',
    ]
    assert report.sections[0].text == 'The river is long [s101].\n\nIt rises somewhere [s101].'
    assert max(len(one.messages[-1].text) for one in model.requests) < 3_000
