"""Makes one tool of several that work together, and says which ones do."""

from collections.abc import Sequence
from dataclasses import dataclass

from habilis.core.errors import ForgeError, ToolExists
from habilis.forge.build.forge import Built, Forge
from habilis.forge.contract import require_python
from habilis.forge.library.library import Library
from habilis.forge.library.retirement import Proposal, proposals
from habilis.forge.library.usage import Combination
from habilis.journal import Store
from habilis.tools.tool_names import check_name

_MAX_TASKS = 5
_MAX_TASK = 300


@dataclass(frozen=True, kw_only=True)
class Popular:
    """A tool that is called with success."""

    name: str
    calls: int
    successes: int


@dataclass(frozen=True, kw_only=True)
class Suggestions:
    """What the usage of a library suggests."""

    compose: tuple[Combination, ...]
    """Tools that worked together in two runs or more, and that no tool is composed of yet."""

    popular: tuple[Popular, ...]
    """The tools that were called most with success, best first."""

    retire: tuple[Proposal, ...]


def suggest(library: Library, *, limit: int = 10) -> Suggestions:
    """What to compose, to rely on, and to delete. Raises `ForgeError` if the record of calls is damaged."""
    names = set(library.names())
    composed = {frozenset(library.uses(name)) for name in names}
    worked = [one for one in library.usage.combinations() if names.issuperset(one.tools)]
    calls: dict[str, Popular] = {}
    for used in library.usage.read():
        if used.name in names:
            before = calls.get(used.name, Popular(name=used.name, calls=0, successes=0))
            successes = before.successes + used.calls - used.failed
            calls[used.name] = Popular(name=used.name, calls=before.calls + used.calls, successes=successes)
    popular = sorted((one for one in calls.values() if one.successes), key=_rank)
    return Suggestions(
        compose=tuple(one for one in worked if frozenset(one.tools) not in composed)[:limit],
        popular=tuple(popular[:limit]),
        retire=tuple(proposals(library)),
    )


def _rank(tool: Popular) -> tuple[float, str]:
    """By successful calls, weighted by their share: a tool that fails half of the time is not worth its calls."""
    return -(tool.successes**2 / tool.calls), tool.name


async def compose(
    forge: Forge,
    tools: Sequence[str],
    name: str,
    *,
    request: str = '',
    examples: Sequence[str] = (),
    journal: Store | str | None = None,
    run_id: str | None = None,
) -> Built:
    """Build one tool that calls these tools of the library. It is tested like any other.

    Args:
        forge: what builds it.
        tools: at least two tools.
        name: what the new tool is called.
        request: what it is for; by default what the tools do, and the tasks that they worked together for.
        examples: conditions that it must fulfil.
        journal: where the build is recorded; None for the default.
        run_id: name to resume it by.
    """
    library, parts = forge.library, list(dict.fromkeys(tools))
    if len(parts) < 2:
        msg = 'name at least two tools to compose'
        raise ForgeError(msg)
    for part in parts:
        require_python(library.candidate(part), 'composed')
    check_name(name)
    if name in library:
        msg = f'there is already a tool {name!r}; choose another name'
        raise ToolExists(msg)
    wanted = request or _request(library, parts)
    return await forge.build(wanted, examples, name=name, uses=parts, journal=journal, run_id=run_id)


def _request(library: Library, tools: Sequence[str]) -> str:
    steps = ', then '.join(tools)
    about = ''.join(f'\n- {made.signature}: {made.summary}' for made in map(library.manifest, tools))
    known = [task for one in library.usage.combinations(times=1) if one.tools == tuple(tools) for task in one.tasks]
    tasks = ''.join(f'\n- {" ".join(task.split())[:_MAX_TASK]}' for task in list(dict.fromkeys(known))[-_MAX_TASKS:])
    worked = f'\nThese tasks were solved that way:{tasks}' if tasks else ''
    return f'Do in one call what these functions do together: {steps}.{about}{worked}'
