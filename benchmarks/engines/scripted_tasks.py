"""An agent whose runs have three steps and need no model."""

from habilis.agent import Agent
from habilis.models import ScriptedModel

APP = f'{__name__}:agent'
_CODE = ('x = 1\nprint(x)', 'x += 1\nprint(x)', 'final_answer(x)')
ANSWER = 2

_model = ScriptedModel([f'```python\n{code}\n```' for code in _CODE])
_model.reply_by_turn()
agent = Agent(_model, name='bench')
