"""What is done around model turns and cells beyond the loop itself; see `contract.py`."""

from importlib import import_module
from typing import cast

from habilis.agent.policies.contract import History, Policy, SeenCell, SeenReply, Verdict
from habilis.agent.policies.general import GeneralPolicy
from habilis.core.errors import AgentError
from habilis.models.contract import Traits

__all__ = ['GeneralPolicy', 'History', 'Policy', 'SeenCell', 'SeenReply', 'Verdict', 'load_policy']

_HOMES = {
    'general': ('habilis.agent.policies.general', 'GeneralPolicy'),
    'small': ('habilis.agent.policies.small', 'SmallPolicy'),
}


def load_policy(choice: str | Policy | None, traits: Traits) -> Policy:
    """The policy that was chosen by name or given; without a choice, the one that suits the model."""
    if choice is not None and isinstance(choice, Policy):
        return choice
    name = choice or ('small' if traits.small else 'general')
    if name not in _HOMES:
        msg = f'there is no policy {name!r}; choose one of {", ".join(_HOMES)}, or pass a Policy'
        raise AgentError(msg)
    module, attribute = _HOMES[name]
    return cast('Policy', getattr(import_module(module), attribute)())
