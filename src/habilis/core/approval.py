"""The answer of a person who was asked whether a tool may be called: the same for programs, terminals and records."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from habilis.core.codec import Json

ApprovalScope = Literal['once', 'cell', 'always', 'session']
DEFAULT_CALLS = 50
_TYPES: Mapping[str, type] = {'approved': bool, 'reason': str, 'scope': str, 'calls': int, 'prefix': str}
CHOICES = 'y/N/cell/always/session/stop'
WORDS = f"""\
yes             this call
cell [NUMBER]   so many calls of this tool in this cell (default: {DEFAULT_CALLS})
always          all calls of this tool in this conversation
always PREFIX   those whose path or command starts so, such as: always src/
session         all calls of any tool in this conversation
no [REASON]     the model is told the reason
stop [REASON]   no to all calls of this tool in this cell"""
"""What a person can answer; see `Approval.parse`."""


@dataclass(frozen=True, kw_only=True)
class Approval:
    """The answer of a person to an `ApprovalRequest`."""

    approved: bool = True
    reason: str = ''
    """Why not. The model is told."""

    scope: ApprovalScope = 'once'
    """What is approved: this call; calls of this tool in the same cell; calls of this tool in the conversation; or all
    calls in the conversation. For a run without a conversation, in the run. What is refused: this call and those that
    wait beside it, or with `cell` all calls of this tool in the same cell."""

    calls: int = DEFAULT_CALLS
    """With `cell`: how many calls, this one included."""

    prefix: str = ''
    """With `always`: only calls whose first argument is this path or command, or one that starts with it."""

    @classmethod
    def of(cls, answer: object) -> 'Approval':
        """What a function has answered: only `True` and an `Approval` approve."""
        return answer if isinstance(answer, Approval) else cls(approved=answer is True)

    @classmethod
    def parse(cls, words: str) -> 'Approval | None':
        """What a person has typed; None if it is none of `WORDS`."""
        word, _, rest = words.strip().partition(' ')
        rest = rest.strip()
        match word.lower().rstrip(',:'):
            case 'y' | 'yes' if not rest:
                return cls()
            case '' | 'n' | 'no':
                return cls(approved=False, reason=rest)
            case 'stop':
                return cls(approved=False, reason=rest, scope='cell')
            case 'cell' if not rest or (rest.isdecimal() and int(rest) > 0):
                return cls(scope='cell', calls=int(rest or DEFAULT_CALLS))
            case 'always':
                return cls(scope='always', prefix=rest)
            case 'session' if not rest:
                return cls(scope='session')
            case _:
                return None

    @classmethod
    def from_json(cls, written: Json) -> 'Approval':
        """An answer as it is recorded: true, false, or an object with fields of this class. Raises `ValueError`."""
        if isinstance(written, bool):
            return cls(approved=written)
        if not isinstance(written, dict) or not isinstance(written.get('approved'), bool):
            msg = 'answer True or False, or an object with `approved`'
            raise ValueError(msg)
        wrong = [name for name, value in written.items() if not isinstance(value, _TYPES.get(name, ()))]
        if wrong or written.get('scope', 'once') not in get_args(ApprovalScope):
            name = wrong[0] if wrong else 'scope'
            msg = f'{name} is wrong: an answer has {", ".join(_TYPES)}; scope is {", ".join(get_args(ApprovalScope))}'
            raise ValueError(msg)
        return cls(**written)  # pyright: ignore[reportArgumentType]

    def to_json(self) -> Json:
        """For the record: true or false, or the fields that say more."""
        told: dict[str, Json] = {
            name: value for name, value in asdict(self).items() if value != getattr(Approval(), name)
        }
        return {'approved': self.approved, **told} if told.keys() - {'approved'} else self.approved
