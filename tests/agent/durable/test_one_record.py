"""Each fact of a run is recorded once: a call has records of its own, and all others refer to them by its path."""

from collections import Counter
from collections.abc import Callable, Coroutine

from habilis.agent import Agent
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.events import CellFinished, Event, ToolReturned
from habilis.core.codec import dump
from habilis.journal import MemoryStore
from habilis.journal.encoding import encode_record
from habilis.journal.runs import read_run
from habilis.journal.stores.wrapper import StoreWrapper, T
from habilis.models import ScriptedModel
from habilis.models.contract import FunctionCall, Reply
from habilis.sandbox import ToolCall
from habilis.tools import ApprovalRequest, Change, ChangeResult, Deny, GateCall, log, tool
from tests.agent.durable.recorded import block

STEPS = 12
TEXT = ' '.join(f'paragraph {number}' for number in range(200))


@tool
def publish(title: str, text: str) -> str:
    """Publish a text."""
    return f'published {title}, {len(text)} characters'


@tool(on_error='none')
def fetch(place: str) -> str:
    """Always fails, and hides it."""
    log(f'looking for {place}')
    raise OSError(place)


@tool(side='both', needs_approval=True)
def pay(amount: int) -> int:
    """Needs somebody."""
    return amount


@tool(side='both')
def count(items: list[int]) -> int:
    """How many."""
    log('counting')
    return len(items)


@tool(side='both', in_memory=True)
def keep(text: str) -> str:
    """Has no record."""
    return text


def gate(call: GateCall) -> Change | Deny | None:
    """Changes a payment, and denies another."""
    amount = call.arguments.get('amount')
    return Deny('too much') if amount == 1000 else Change(arguments={'amount': 10}) if amount == 9 else None


def result_gate(call: GateCall, result: object) -> ChangeResult | None:
    """Changes a result."""
    return ChangeResult(result + 1) if call.tool == 'count' and isinstance(result, int) else None


def decide(request: ApprovalRequest) -> bool:
    """A person."""
    return request.arguments['amount'] != 13


def agent_with_all(model: ScriptedModel, store: MemoryStore) -> Agent:
    """An agent with these tools, gates and person."""
    tools = [pay, fetch, count, keep]
    return Agent(model, tools=tools, gates=[gate, result_gate], approve=decide, journal=store)


def calls_of(replies: list[tuple[str, str]]) -> Reply:
    """A reply that calls functions."""
    calls = [FunctionCall(id=f'c{number}', name=name, arguments=given) for number, (name, given) in enumerate(replies)]
    return Reply(calls=tuple(calls))


ALL_KINDS = """
for amount in (5, 9, 13, 1000):
    try:
        pay(amount)
    except Exception as error:
        print(error)
try:
    pay('nothing')
except Exception as error:
    print(type(error).__name__)
print(fetch('here'), count([1, 2]), keep('note'), count([1, 2]))
"""


async def test_a_run_of_twelve_steps_records_the_arguments_of_its_calls_once() -> None:
    store = MemoryStore()
    code = 'text = " ".join(f"paragraph {number}" for number in range(200))\nprint(publish("report %s", text))'
    replies = [*(block(code % number) for number in range(1, STEPS)), block('final_answer("done")')]
    async with Agent(ScriptedModel(replies), tools=[publish], journal=store) as agent:
        result = await agent.run('Publish them', run_id='r')
    assert (len(result.steps), result.output) == (STEPS, 'done')
    records = await store.load('r')
    holders = [record for record in records if TEXT in dump(record.value)]
    assert [record.path for record in holders] == [call.path for step in result.steps for call in step.calls]
    size, arguments = sum(len(encode_record(record)) for record in records), len(TEXT) * (STEPS - 1)
    assert size < 2 * arguments, f'{size} bytes of records for {arguments} of arguments'


async def test_a_finished_run_is_read_as_it_was() -> None:
    store = MemoryStore()
    replies = [
        'Let me see.\n' + block(ALL_KINDS),
        calls_of([('pay', '{"amount": 7}'), ('keep', '{"text": "x"}'), ('python', '{"code": "print(count([3]))"}')]),
        calls_of([('pay', '{"amount": 13}'), ('count', '{"items": [1]}'), ('count', '{"items": 5}')]),
        '',
        block('x = 1 / 0'),
        block('final_answer(5)'),
    ]
    async with agent_with_all(ScriptedModel(replies, functions=True), store) as agent:
        result = await agent.run('Do it', run_id='r')
        assert result.output == 5
        assert await agent.resume('r') == result
    async with agent_with_all(ScriptedModel([]), store) as other:
        again = await other.resume('r')
    assert again.steps == result.steps
    assert again == result
    [trajectory] = await read_trajectories(await read_run(store, 'r'))
    assert [turn.calls for turn in trajectory.turns] == [step.calls for step in result.steps]


async def test_a_call_has_one_id_and_one_duration() -> None:
    store, seen = MemoryStore(), list[ToolCall]()
    cells: list[tuple[ToolCall, ...]] = []

    def hook(event: Event) -> None:
        if isinstance(event, ToolReturned):
            seen.append(event.call)
        elif isinstance(event, CellFinished):
            cells.append(event.cell.calls)

    model = ScriptedModel([block('count([1])\ncount([1])\ncount([2])\nfinal_answer(1)')])
    async with Agent(model, tools=[count], journal=store, hooks=[hook]) as agent:
        result = await agent.run('Count', run_id='r')
    [step] = result.steps
    assert step.cell is not None
    assert tuple(seen) == step.calls == step.cell.calls == cells[0]
    view = await read_run(store, 'r')
    [trajectory] = await read_trajectories(view)
    assert trajectory.turns[0].calls == step.calls
    assert len({call.path for call in step.calls}) == 3
    for call in step.calls:
        entry = view.index.find(call.path)
        assert entry is not None
        assert entry.opened is not None
        assert entry.end is not None
        assert (call.at, call.seconds) == (entry.opened.at, entry.end.at - entry.opened.at)


class Counting(StoreWrapper):
    """Counts the operations of the store behind it."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.made: Counter[str] = Counter()

    async def _do(self, operation: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        self.made[operation] += 1
        return await work()


async def test_a_run_appends_once_for_its_prompt_each_reply_each_cell_and_its_end() -> None:
    store, steps = Counting(), 3
    model = ScriptedModel([block('x = 1'), block('print(x)'), block('final_answer(x)')])
    async with Agent(model, journal=store) as agent:
        result = await agent.run('Count.')
    assert (result.output, len(result.steps)) == (1, steps)
    assert store.made == {'create': 1, 'claim': 1, 'append': 1 + 2 * steps + 1, 'release': 1}
