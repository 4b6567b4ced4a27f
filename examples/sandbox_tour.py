"""A tour of the sandbox in six stops. Nothing in it is faked: what you see is what the sandbox said.

python examples/sandbox_tour.py
"""

import asyncio
import time

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.syntax import Syntax

from habilis import Cell, Limits, Sandbox

console = Console(highlight=False)


async def exchange_rate(currency: str) -> float:
    """Euros for one unit of a currency. Runs on the host, as a web service would."""
    await asyncio.sleep(0.2)
    return {'USD': 0.92, 'GBP': 1.17, 'JPY': 0.0061, 'CHF': 1.05}[currency]


def stop(number: int, title: str) -> None:
    """Announce a stop of the tour."""
    console.print(f'\n[bold cyan]{number}. {title}[/]')


async def show(sandbox: Sandbox, code: str, name: str = '') -> Cell:
    """Run code and show it with what came of it."""
    console.print(Padding(Syntax(code, 'python', background_color='default', theme='ansi_dark'), (0, 0, 0, 3)))
    cell = await sandbox.run(code, on_output=lambda stream, text: console.print(f'   [dim]{escape(text.rstrip())}[/]'))
    time_taken = f'[dim]{cell.seconds * 1000:.1f} ms{name}[/]'
    if cell.error:
        console.print(f'   [red]✗ {escape(str(cell.error))}[/]  [dim]({cell.error.kind})[/]  {time_taken}')
    else:
        console.print(f'   [green]✓[/] {escape(cell.text or "")}  {time_taken}')
    return cell


async def main() -> None:
    """The tour."""
    console.print('[bold]Habilis[/]: real CPython in WebAssembly, kept apart from this machine.')
    await (await Sandbox.create()).close()  # the very first one loads the interpreter (and builds it on a new machine)

    stop(1, 'A new sandbox, from nothing to a result')
    started = time.perf_counter()
    sandbox = await Sandbox.create(limits=Limits(seconds=1), tools=[exchange_rate])
    await sandbox.run('1 + 1')
    console.print(f'   [green]✓[/] created and answered in [bold]{(time.perf_counter() - started) * 1000:.1f} ms[/]')

    stop(2, 'Variables, functions and imports stay')
    await show(
        sandbox, 'from statistics import mean\nprices = {"USD": [12, 15], "GBP": [20], "JPY": [900], "CHF": [7]}'
    )
    await show(sandbox, '{currency: mean(values) for currency, values in prices.items()}')

    stop(3, 'Four calls of a host tool, 0.2 s each, at the same time')
    await show(
        sandbox,
        'import asyncio\n'
        'rates = dict(zip(prices, await asyncio.gather(*map(exchange_rate, prices))))\n'
        'round(sum(rates[c] * sum(p) for c, p in prices.items()), 2)',
    )

    stop(4, 'An endless loop ends at its limit; the variables from before are back')
    await show(sandbox, 'prices.clear()\nprint("looping …")\nwhile True: pass')
    await show(sandbox, 'sorted(prices)')

    stop(5, 'Nothing of this machine is inside')
    await show(sandbox, 'open("/etc/passwd").read()')
    await show(sandbox, 'import os\ndict(os.environ)')
    await show(sandbox, 'import socket\nsocket.create_connection(("127.0.0.1", 22))')
    await show(sandbox, 'import subprocess\nsubprocess.run(["id"])')

    stop(6, 'A fork has the same variables and goes its own way')
    started = time.perf_counter()
    twin = await sandbox.fork()
    console.print(f'   [green]✓[/] forked in [bold]{(time.perf_counter() - started) * 1000:.1f} ms[/]')
    await show(twin, 'prices["EUR"] = [1]; sorted(prices)', ' in the twin')
    await show(sandbox, 'sorted(prices)', ' in the first')
    await twin.close()
    await sandbox.close()
    console.print(
        '\nNext: [bold]habilis sandbox repl[/], [bold]habilis doctor[/], [bold]make bench[/], and docs/tutorial.md'
    )


if __name__ == '__main__':
    asyncio.run(main())
