"""What is made first of a run: the components that the others work with."""

from dataclasses import dataclass

from habilis.agent.durable.recorder import Recorder
from habilis.agent.hooks.dispatch import Dispatcher
from habilis.agent.loop.final_answer import FinalAnswer
from habilis.agent.loop.limits import Meter
from habilis.agent.policies import History, Policy
from habilis.agent.run_spec import RunSpec
from habilis.models.usage import Ledger
from habilis.tools import Toolbox


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """The components of a run that do not depend on its conversation."""

    spec: RunSpec
    toolbox: Toolbox
    answer: FinalAnswer
    policy: Policy
    history: History
    meter: Meter
    ledger: Ledger
    events: Dispatcher
    recorder: Recorder | None
