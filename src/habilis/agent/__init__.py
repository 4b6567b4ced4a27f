"""The agent: a model that acts by writing Python."""

from habilis.agent.agent import Agent
from habilis.agent.contract import Ended, Result, RunLimits, Step
from habilis.agent.cut import Bounds
from habilis.agent.run import Run
from habilis.agent.watch import Hook, OutgoingHook

__all__ = ['Agent', 'Bounds', 'Ended', 'Hook', 'OutgoingHook', 'Result', 'Run', 'RunLimits', 'Step']
