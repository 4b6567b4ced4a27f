"""Questions to people, durably: the run pauses, the process may end, and the answer may come days later."""

from collections.abc import Mapping

from habilis.core import codec
from habilis.core.codec import Json, NotPlain
from habilis.flows.contract import FlowArgumentsError, FlowError
from habilis.journal import Scope, fingerprint, recording_scope


async def approval(question: str, *, details: Mapping[str, object] | None = None) -> bool:
    """Whether a person approves. The run pauses until `answer_run` is called with True or False.

    Args:
        question: the question to show.
        details: plain data to show with it. Different details make it a different question.
    """
    answer = await _ask('approval', question, details)
    if isinstance(answer, dict):
        answer = answer.get('approved')
    return answer is True


async def ask(question: str, *, details: Mapping[str, object] | None = None) -> object:
    """The answer of a person, as given to `answer_run`. The run pauses until then."""
    return codec.unpack(await _ask('question', question, details))


async def _ask(kind: str, question: str, details: Mapping[str, object] | None) -> Json:
    scope = _scope(kind)
    try:
        packed = codec.pack(dict(details or {}))
    except NotPlain as error:
        msg = f'the details of {question!r} must be plain data: {error}'
        raise FlowArgumentsError(msg) from None
    request: Json = {'kind': kind, 'question': question, 'details': packed}
    return await scope.ask(kind, request, question=question, key=fingerprint(question, packed))


def _scope(kind: str) -> Scope:
    scope = recording_scope()
    if scope is None:
        msg = f'cannot ask a person here ({kind}): call this inside a flow, or in a step that is an `async def`'
        raise FlowError(msg)
    return scope
