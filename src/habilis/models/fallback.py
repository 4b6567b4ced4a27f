"""Several models in order: the next is asked when one cannot answer."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from habilis.core.errors import ContextOverflow, ModelError, ModelUnavailable, NoModel
from habilis.models.around import says_something, streaming
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Traits

_log = logging.getLogger(__name__)


class FallbackModel:
    """Asks the models one after the other until one answers; `Reply.model` says which.

    A conversation that is too long (`ContextOverflow`) is raised at once: it is to be made shorter, for all of them. A
    stream goes over to the next model only as long as nothing of it was passed on.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            msg = 'a fallback needs at least one model: give it a list such as [first, second]'
            raise NoModel(msg)
        self.models = tuple(models)
        """In the order in which they are asked."""

    @property
    def name(self) -> str:
        """That of the first model."""
        return self.models[0].name

    @property
    def traits(self) -> Traits:
        """Those of the first model, but only with the abilities and labels that hold whichever of them answers."""
        every = [model.traits for model in self.models]
        return replace(
            every[0],
            functions=all(traits.functions for traits in every),
            scripted=any(traits.scripted for traits in every),
            local=all(traits.local for traits in every),
            small=all(traits.small for traits in every),
        )

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply, of the first model that gives one. Raises one error that names each model and its reason."""
        failed: list[tuple[Model, ModelError]] = []
        for model in self.models:
            try:
                return _signed(await model.request(messages, options), model)
            except ContextOverflow:
                raise
            except ModelError as error:
                failed.append(_noted(model, error))
        raise _all_failed(failed)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The reply bit by bit, of the first model that begins one."""
        failed: list[tuple[Model, ModelError]] = []
        for model in self.models:
            shown = False
            try:
                async with streaming(model, messages, options) as items:
                    async for item in items:
                        shown = shown or says_something(item)
                        yield _signed(item, model) if isinstance(item, Reply) else item
                return
            except ContextOverflow:
                raise
            except ModelError as error:
                if shown:
                    raise
                failed.append(_noted(model, error))
        raise _all_failed(failed)

    async def close(self) -> None:
        """Close them all, also if one cannot be closed."""
        outcomes = await asyncio.gather(*(model.close() for model in self.models), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


def _signed(reply: Reply, model: Model) -> Reply:
    return reply if reply.model else replace(reply, model=model.name)


def _noted(model: Model, error: ModelError) -> tuple[Model, ModelError]:
    _log.warning('%s cannot answer: %s', model.name, error)
    return model, error


def _all_failed(failed: list[tuple[Model, ModelError]]) -> ModelError:
    """One error for all. It may pass if one of them may; it is of their common kind if they have one."""
    reasons = '; '.join(f'{model.name}: {" ".join(str(error).split())}' for model, error in failed)
    msg = f'no model answered ({len(failed)} asked): {reasons}'
    errors = [error for _, error in failed]
    if any(error.retryable for error in errors):
        waits = [error.retry_after for error in errors if error.retry_after is not None]
        return ModelUnavailable(msg, retry_after=min(waits, default=None))
    kinds = {type(error) for error in errors}
    statuses = {error.status for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else ModelError
    return kind(msg, status=statuses.pop() if len(statuses) == 1 else None)
