"""The agent: a model that acts by writing Python."""

from habilis.agent.agent import Agent
from habilis.agent.chat import Chat
from habilis.agent.context.truncation import Bounds
from habilis.agent.contract import Agreement, Ended, Result, RunLimits, Step
from habilis.agent.hooks.dispatch import Hook, OutgoingHook
from habilis.agent.loop.run import Run
from habilis.agent.options import Helper
from habilis.agent.policies import Policy

__all__ = [
    'Agent',
    'Agreement',
    'Bounds',
    'Chat',
    'Ended',
    'Helper',
    'Hook',
    'OutgoingHook',
    'Policy',
    'Result',
    'Run',
    'RunLimits',
    'Step',
]
