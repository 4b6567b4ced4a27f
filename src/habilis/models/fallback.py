"""Fallback: if a model fails, the next one gets the request."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from habilis.core.errors import ContextOverflow, ModelError, ModelUnavailable, NoModel
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Traits
from habilis.models.wrapper import has_content, streaming

_log = logging.getLogger(__name__)


class FallbackModel:
    """Tries the models in order until one answers; `Reply.model` names it.

    `ContextOverflow` is raised at once, so that the caller can shorten the conversation. A stream falls back only
    before its first content.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            msg = 'FallbackModel needs at least one model, for instance FallbackModel([first, second])'
            raise NoModel(msg)
        self.models = tuple(models)
        """The models, in the order of use."""

    @property
    def name(self) -> str:
        """Name of the first model."""
        return self.models[0].name

    @property
    def traits(self) -> Traits:
        """Traits that hold for every model; `context_tokens` is that of the first one."""
        members = [model.traits for model in self.models]
        return replace(
            members[0],
            functions=all(traits.functions for traits in members),
            scripted=any(traits.scripted for traits in members),
            local=all(traits.local for traits in members),
            images=all(traits.images for traits in members),
            small=all(traits.small for traits in members),
        )

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply of the first model that answers. If all fail, raises one error that names each reason."""
        failed: list[tuple[Model, ModelError]] = []
        for model in self.models:
            try:
                return _with_model_name(await model.request(messages, options), model)
            except ContextOverflow:
                raise
            except ModelError as error:
                failed.append(_logged(model, error))
        raise _all_failed(failed)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply of the first model that starts one."""
        failed: list[tuple[Model, ModelError]] = []
        for model in self.models:
            shown = False
            try:
                async with streaming(model, messages, options) as items:
                    async for item in items:
                        shown = shown or has_content(item)
                        yield _with_model_name(item, model) if isinstance(item, Reply) else item
                return
            except ContextOverflow:
                raise
            except ModelError as error:
                if shown:
                    raise
                failed.append(_logged(model, error))
        raise _all_failed(failed)

    async def close(self) -> None:
        """Close all models, even if closing one fails."""
        outcomes = await asyncio.gather(*(model.close() for model in self.models), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome


def _with_model_name(reply: Reply, model: Model) -> Reply:
    return reply if reply.model else replace(reply, model=model.name)


def _logged(model: Model, error: ModelError) -> tuple[Model, ModelError]:
    _log.warning('%s failed: %s', model.name, error)
    return model, error


def _all_failed(failed: list[tuple[Model, ModelError]]) -> ModelError:
    """Combine the errors: retryable if any is, of their common type if they share one."""
    reasons = '; '.join(f'{model.name}: {" ".join(str(error).split())}' for model, error in failed)
    msg = f'all {len(failed)} models failed: {reasons}'
    errors = [error for _, error in failed]
    if any(error.retryable for error in errors):
        waits = [error.retry_after for error in errors if error.retry_after is not None]
        return ModelUnavailable(msg, retry_after=min(waits, default=None))
    kinds = {type(error) for error in errors}
    statuses = {error.status for error in errors}
    kind = kinds.pop() if len(kinds) == 1 else ModelError
    return kind(msg, status=statuses.pop() if len(statuses) == 1 else None)
