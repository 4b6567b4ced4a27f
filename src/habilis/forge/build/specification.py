"""What a tool is to do: the request, and the definition of the function that a model designs for it."""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from habilis.core.errors import ForgeError, ToolDefinitionError
from habilis.core.syntax import parse_module
from habilis.forge.build.examples import called_name, fitted_signature, wanted_parameters
from habilis.forge.build.languages import check_language
from habilis.forge.build.reference import Reference, quoted
from habilis.forge.build.requests import StageConversation, code_block, functions_in, prompt, without_body
from habilis.forge.contract import Language, Refused
from habilis.forge.source import read_source
from habilis.models.contract import Model

_WITH_BODY = """; but if it needs no branch and no loop, with its body, and above it
   the imports that it needs"""
_CHECK = """4. only if you wrote the body: the function once more as `{name}_check`, in another way (other functions or
   another formula); both are compared on many inputs
"""
"""A function that one request suffices for."""

_BRANCHES = (ast.If, ast.IfExp, ast.Match, ast.Try, ast.For, ast.While)

TRIES = 3
"""Attempts at a specification, at tests, and at tests that notice enough mutants."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What somebody wants to have built."""

    request: str
    examples: list[str] = field(default_factory=list[str])
    name: str = ''
    uses: list[str] = field(default_factory=list[str])
    references: list[Reference] = field(default_factory=list[Reference])
    language: Language = 'python'

    @property
    def shown_examples(self) -> str:
        """The examples as a part of a prompt."""
        if not self.examples:
            return ''
        return '\nThis must hold:\n' + ''.join(f'- {example.strip()}\n' for example in self.examples)

    @property
    def context(self) -> str:
        """The reference material as a part of a prompt."""
        return quoted(self.references)


@dataclass(frozen=True, kw_only=True)
class Specification:
    """Name and definition of the function, as Python without a body."""

    name: str
    stub: str
    reply: str = ''
    """All that the model wrote, which may have tests, too."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the model decided, as the request leaves it open."""
        return tuple(one.strip() for one in re.findall(r'^\s*#\s*(assumed: .+)$', self.reply, re.MULTILINE))

    @property
    def codes(self) -> list[str]:
        """A function without branches and loops, written in two ways beside its definition; empty if it was not."""
        tree = parse_module(code_block(self.reply))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        first, check = functions.get(self.name), functions.get(f'{self.name}_check')
        if first is None or check is None or without_body(ast.unparse(first)) != self.stub:
            return []
        check.body = [*first.body[:1], *(check.body[1:] if ast.get_docstring(check) else check.body)]
        check.name, check.args, check.returns = first.name, first.args, first.returns
        others = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
        are_simple = not any(_is_branch(node) for one in (first, check) for node in ast.walk(one))
        return [ast.unparse(ast.Module([*others, one], [])) for one in (first, check)] if are_simple else []


def _is_branch(node: ast.AST) -> bool:
    return isinstance(node, _BRANCHES) or (isinstance(node, ast.comprehension) and bool(node.ifs))


async def specify(
    order: Order, model: Model, *, lessons: Sequence[str], is_taken: Callable[[str], bool]
) -> Specification:
    """Let a model design the function. Raises `Refused`."""
    wanted = order.name or called_name(order.examples)
    if wanted and is_taken(wanted):
        msg = f'there is already a tool {wanted!r}, which does something else or is in another language'
        raise Refused(msg)
    told = ''.join(f'- {lesson}\n' for lesson in lessons)
    conversation = StageConversation(model, 'spec')
    name, is_simple = wanted or '<name>', order.language == 'python' and not order.uses
    text = prompt('spec' if model.traits.small else 'spec_whole').format(
        request=order.request,
        examples=order.shown_examples,
        name=name,
        parameters=wanted_parameters(order.examples, wanted) or '<parameters with type hints>',
        naming=f'The name is `{wanted}`.' if wanted else 'Choose a name that says what it returns or does.',
        lessons=f'\nEarlier attempts at something similar failed:\n{told}' if told else '',
        context=order.context,
        body=f'without a body{_WITH_BODY if is_simple else ""}',
        check=_CHECK.format(name=name) if is_simple else '',
    )
    problem = ''
    for _ in range(TRIES):
        reply = await conversation.say(text)
        try:
            return replace(_read(code_block(reply), wanted, order, is_taken), reply=reply)
        except (ForgeError, ToolDefinitionError) as error:
            problem = str(error) if code_block(reply) or not problem else problem  # an empty reply is no news
            text = f'{problem}\n\nReply with one code block that has the corrected definition.'
    raise Refused(f'no usable specification: {problem}')


def _read(code: str, wanted: str, order: Order, is_taken: Callable[[str], bool]) -> Specification:
    functions = functions_in(code)
    if not functions:
        msg = 'there is no function definition in your reply'
        raise ForgeError(msg)
    name = wanted if wanted in functions else next(iter(functions))
    if wanted and name != wanted:
        msg = f'the function must be called {wanted}'
        raise ForgeError(msg)
    read_source(name, functions[name])
    if is_taken(name):
        msg = f'there is already a tool {name!r} that does something else; choose another name'
        raise ForgeError(msg)
    stub = without_body(fitted_signature(functions[name], order.examples))
    check_language(stub, order.language)
    return Specification(name=name, stub=stub)
