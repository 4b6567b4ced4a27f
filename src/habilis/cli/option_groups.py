"""Options that several commands have, as dataclasses: each is listed once."""

import inspect
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from habilis.cli import backend_options, options

if TYPE_CHECKING:
    from habilis.cli.run.request import CommandRequest

C = TypeVar('C', bound=Callable[..., None])
G = TypeVar('G')


def takes(*groups: type) -> Callable[[C], C]:
    """For a command with `**given`: typer sees each field of these dataclasses as an option. See `take`."""

    def decorate(command: C) -> C:
        hints = get_type_hints(command, include_extras=True)
        own = [
            one for one in inspect.signature(command).parameters.values() if one.name in hints and one.name != 'given'
        ]
        shown = {one.name: one.replace(annotation=hints[one.name]) for one in own}
        for group in groups:
            inner = get_type_hints(group, include_extras=True)
            for field in fields(group):
                shown[field.name] = inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=inner[field.name]
                )
        command.__signature__ = inspect.Signature(list(shown.values()))  # type: ignore[attr-defined]
        command.__annotations__ = {name: one.annotation for name, one in shown.items()}
        return command

    return decorate


def take(group: type[G], given: Mapping[str, Any]) -> G:
    """The options of a group among those that the command was given."""
    return group(**{field.name: given[field.name] for field in fields(group)})  # type: ignore[arg-type]


def positive(value: float | None) -> float | None:
    """Refuse a number that is no limit."""
    if value is not None and not (value > 0 and math.isfinite(value)):
        msg = f'expected a number above zero, not {value:g}'
        raise typer.BadParameter(msg)
    return value


@dataclass(frozen=True, kw_only=True)
class LimitOptionsGroup:
    """The limits of a run: of `habilis run` and `habilis map`."""

    max_steps: Annotated[
        int | None,
        typer.Option(
            '--max-steps', metavar='N', help='Maximum number of model replies (default: 20).', callback=positive
        ),
    ] = None
    max_seconds: Annotated[
        float | None,
        typer.Option(
            '--max-seconds',
            metavar='S',
            help='Time limit in seconds (default: 600 with a local model).',
            callback=positive,
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option('--max-cost', metavar='USD', help='Cost limit in US dollars (default: none).', callback=positive),
    ] = None

    @property
    def limits(self) -> dict[str, object]:
        """The limits as settings."""
        return {'max_steps': self.max_steps, 'max_seconds': self.max_seconds, 'max_cost': self.max_cost}


@dataclass(frozen=True, kw_only=True)
class WorkOptionsGroup:
    """The model, the sandbox and what code may use: of `habilis run`, `habilis chat` and `habilis serve`."""

    model: options.ModelName = None
    base_url: options.BaseUrl = None
    sandbox: options.SandboxName = None
    sandbox_image: backend_options.Image = None
    sandbox_url: backend_options.Url = None
    allow_weak: backend_options.AllowWeak = False
    workspace: options.Workspace = None
    create: options.Create = False
    checkpoints: options.Checkpoints = False
    delegate: options.Delegate = False
    tools: options.Tools = None
    mcp: options.Mcp = None
    library: options.Library = None
    skills: options.Skills = None
    packages: options.Packages = None
    network: options.Network = None
    journal: options.RunJournal = None
    user: options.User = None
    yes: options.Download = False

    def check(self, *, needs_folder: bool = True) -> None:
        """Refuse what does not fit together. `needs_folder`: no folder comes from a record."""
        if self.base_url is not None and self.model is None:
            msg = 'name a model of this server with --model'
            raise typer.BadParameter(msg, param_hint='--base-url')
        if self.checkpoints and self.workspace is None and needs_folder:
            msg = 'give the folder whose files are stored with --workspace DIR'
            raise typer.BadParameter(msg, param_hint='--checkpoints')
        options.existing_folder(self.workspace, create=self.create)

    def request(
        self, *, overrides: dict[str, object] | None = None, settings: dict[str, object] | None = None, **more: Any
    ) -> 'CommandRequest':
        """What the command asks for. `more`: further fields of the request."""
        from habilis.cli.run.request import CommandRequest, ToolNames

        own = {'sandbox': self.sandbox, 'journal': self.journal, 'user': self.user}
        return CommandRequest(
            model=self.model,
            overrides={'base_url': self.base_url, **(overrides or {})},  # type: ignore[typeddict-item]
            settings={**own, **(settings or {})},
            backend=backend_options.BackendOptions(
                image=self.sandbox_image, url=self.sandbox_url, allow_weak=self.allow_weak
            ),
            workspace=self.workspace,
            checkpoints=self.checkpoints,
            delegate=self.delegate,
            tools=ToolNames(names=options.words(self.tools), folder=os.getcwd()) if self.tools else None,
            mcp=self.mcp or (),
            library=self.library,
            skills=options.words(self.skills),
            packages=options.words(self.packages),
            network=options.words(self.network),
            download=self.yes,
            **more,
        )
