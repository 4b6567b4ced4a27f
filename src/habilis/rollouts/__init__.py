"""Samples of an agent's runs with rewards, for those who train models."""

from habilis.rollouts.contract import Rollout, RolloutGroup, RolloutTask, Sample
from habilis.rollouts.environment import CodeEnvironment, EnvironmentState
from habilis.rollouts.export import group_rows, message_rows
from habilis.rollouts.rewards import CodeReward, exact_reward
from habilis.rollouts.rollouts import Rollouts
from habilis.rollouts.statistics import PassRate, pass_rate

__all__ = [
    'CodeEnvironment',
    'CodeReward',
    'EnvironmentState',
    'PassRate',
    'Rollout',
    'RolloutGroup',
    'RolloutTask',
    'Rollouts',
    'Sample',
    'exact_reward',
    'group_rows',
    'message_rows',
    'pass_rate',
]
