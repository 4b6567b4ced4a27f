"""A tour of the sandbox in six stops. All output comes from real sandboxes.

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
    """Print the heading of a stop."""
    console.print(f'\n[bold cyan]{number}. {title}[/]')


async def show(sandbox: Sandbox, code: str, name: str = '') -> Cell:
    """Run code, and print it with its result."""
    console.print(Padding(Syntax(code, 'python', background_color='default', theme='ansi_dark'), (0, 0, 0, 3)))
    cell = await sandbox.run(code, on_output=lambda stream, text: console.print(f'   [dim]{escape(text.rstrip())}[/]'))
    time_taken = f'[dim]{cell.seconds * 1000:.1f} ms{name}[/]'
    if cell.error:
        console.print(f'   [red]✗ {escape(str(cell.error))}[/]  [dim]({cell.error.kind})[/]  {time_taken}')
    else:
        console.print(f'   [green]✓[/] {escape(cell.text or "")}  {time_taken}')
    return cell


async def main() -> None:
    """Run the tour."""
    console.print('[bold]Habilis[/]: real CPython in WebAssembly, isolated from this machine.')
    await (await Sandbox.create()).close()  # the first sandbox loads the interpreter, or builds it on a new machine

    stop(1, 'A new sandbox, from creation to the first result')
    started = time.perf_counter()
    sandbox = await Sandbox.create(limits=Limits(seconds=1), tools=[exchange_rate])
    await sandbox.run('1 + 1')
    console.print(f'   [green]✓[/] created and answered in [bold]{(time.perf_counter() - started) * 1000:.1f} ms[/]')

    stop(2, 'Variables, functions and imports persist')
    await show(
        sandbox, 'from statistics import mean\nprices = {"USD": [12, 15], "GBP": [20], "JPY": [900], "CHF": [7]}'
    )
    await show(sandbox, '{currency: mean(values) for currency, values in prices.items()}')

    stop(3, 'Four concurrent calls of a host tool, 0.2 s each')
    await show(
        sandbox,
        'import asyncio\n'
        'rates = dict(zip(prices, await asyncio.gather(*map(exchange_rate, prices))))\n'
        'round(sum(rates[c] * sum(p) for c, p in prices.items()), 2)',
    )

    stop(4, 'An endless loop ends at its time limit, and the variables are restored')
    await show(sandbox, 'prices.clear()\nprint("looping …")\nwhile True: pass')
    await show(sandbox, 'sorted(prices)')

    stop(5, 'Code has no access to this machine')
    await show(sandbox, 'open("/etc/passwd").read()')
    await show(sandbox, 'import os\ndict(os.environ)')
    await show(sandbox, 'import socket\nsocket.create_connection(("127.0.0.1", 22))')
    await show(sandbox, 'import subprocess\nsubprocess.run(["id"])')

    stop(6, 'A fork has a copy of the variables')
    started = time.perf_counter()
    forked = await sandbox.fork()
    console.print(f'   [green]✓[/] forked in [bold]{(time.perf_counter() - started) * 1000:.1f} ms[/]')
    await show(forked, 'prices["EUR"] = [1]; sorted(prices)', ' in the fork')
    await show(sandbox, 'sorted(prices)', ' in the original')
    await forked.close()
    await sandbox.close()
    console.print(
        '\nNext: [bold]habilis sandbox repl[/], [bold]habilis doctor[/], [bold]make bench[/], and docs/tutorial.md'
    )


if __name__ == '__main__':
    asyncio.run(main())
