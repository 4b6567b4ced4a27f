"""The policy of small models (about 1 to 3 billion parameters): an addition that the loop knows nothing of."""

from habilis.agent.policies.small.policy import SmallPolicy

__all__ = ['SmallPolicy']
