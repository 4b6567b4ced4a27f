"""The agent: a model that acts by writing Python."""

from habilis.agent.agent import Agent
from habilis.agent.contract import Ended, Result, RunLimits, Step
from habilis.agent.context.truncation import Bounds
from habilis.agent.loop.run import Run
from habilis.agent.hooks.dispatch import Hook, OutgoingHook

__all__ = ['Agent', 'Bounds', 'Ended', 'Hook', 'OutgoingHook', 'Result', 'Run', 'RunLimits', 'Step']
