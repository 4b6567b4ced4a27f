"""The slash commands by name. `commands.py` does what they say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from habilis.core.similar_names import similar_names


@dataclass(frozen=True)
class SlashCommand:
    """A slash command."""

    usage: str
    summary: str
    words: tuple[str, ...] = ()
    """What may follow the name, for completion."""

    waits: Callable[[str], bool] = lambda rest: False
    """Whether it waits for the turn under way, with what follows its name: it changes the conversation, or asks."""


def _always(rest: str) -> bool:
    return True


COMMANDS: Mapping[str, SlashCommand] = {
    '/help': SlashCommand('/help', 'this list, and the keys'),
    '/model': SlashCommand('/model [NAME]', 'list models, or go on with another'),
    '/sandbox': SlashCommand('/sandbox [NAME]', 'show the sandbox, or go on in another', waits=bool),
    '/mode': SlashCommand(
        '/mode [ask | edits | plan | all]',
        'what may be changed without a question',
        ('ask', 'edits', 'plan', 'all'),
        waits=bool,
    ),
    '/plan': SlashCommand(
        '/plan [TASK | edit]',
        'look and plan first, change nothing until the plan is accepted; change the plan in your editor',
        ('edit',),
        waits=_always,
    ),
    '/share': SlashCommand(
        '/share [read | write | no | forget]',
        'show how this folder is shared with the code, or change it for this chat and later ones',
        ('read', 'write', 'no', 'forget'),
        waits=bool,
    ),
    '/packages': SlashCommand('/packages [NAME …]', 'show the packages that code can import, or add some', waits=bool),
    '/tools': SlashCommand('/tools', 'the functions that the code can call'),
    '/memory': SlashCommand(
        '/memory [list | search WORDS | why | forget ID | scope folder | scope all]',
        'facts; search; what the last message got from memory; of this folder or of all',
        ('list', 'search', 'why', 'forget', 'scope'),
        waits=lambda rest: rest.startswith(('forget', 'scope')),
    ),
    '/tasks': SlashCommand('/tasks [all]', 'open tasks', ('all',)),
    '/runs': SlashCommand('/runs', 'the recorded turns of this chat'),
    '/todo': SlashCommand('/todo', 'what the model has listed to do'),
    '/show': SlashCommand('/show [NUMBER]', 'the subagents of this chat, or what one of them did'),
    '/diff': SlashCommand('/diff', 'all that the last turn has changed in files'),
    '/keep': SlashCommand('/keep [NAME]', 'make a tool of the last turn, and of others like it', waits=_always),
    '/undo': SlashCommand('/undo', 'take back the last turn', waits=_always),
    '/fork': SlashCommand('/fork', 'go on in a copy of this chat', waits=_always),
    '/clear': SlashCommand('/clear', 'start a new chat', waits=_always),
    '/compact': SlashCommand(
        '/compact [WHAT TO KEEP]', 'shorten what the model gets of this chat so far', waits=_always
    ),
    '/export': SlashCommand('/export [FILE]', 'write the chat to a file: Markdown, or FILE.json'),
    '/keys': SlashCommand('/keys [emacs | vim]', 'edit what you type with other keys', ('emacs', 'vim')),
    '/cost': SlashCommand('/cost', 'tokens and cost so far'),
    '/context': SlashCommand('/context', 'how full the context is'),
    '/quit': SlashCommand('/quit', 'leave (also q, exit, Ctrl-D)'),
}

SHELL = '!'
"""What a message starts with that is a shell command."""

KEYS = """\
Enter sends. Ctrl-J, Esc Enter or a backslash at the end of a line starts a new line.
Esc or Ctrl-C stops the turn; your next message then continues it. What you type meanwhile is sent after the turn;
commands that only show something, /model and /quit work at once.
!COMMAND runs a shell command in the sandbox, such as !ls; your next message tells the model what it printed.
@FILE gives a file to the model. Up and Down go through what you have sent, Tab completes."""


def is_command(message: str) -> bool:
    """Whether a message is a slash command, and not a text that starts with a path."""
    return message.startswith('/') and '\n' not in message and '/' not in message.split(maxsplit=1)[0][1:]


def waits_for_turn(line: str) -> bool:
    """Whether a slash command has to wait for the turn under way."""
    name, _, rest = line.strip().partition(' ')
    return name in COMMANDS and COMMANDS[name].waits(rest.strip())


def suggestion(name: str) -> str:
    """The command that was perhaps meant; empty if none is like it."""
    return next(iter(similar_names(name, COMMANDS, n=1)), '')
