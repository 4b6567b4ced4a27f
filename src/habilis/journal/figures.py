"""`count_runs`: the figures of runs whose infos are at hand, for stores that cannot count by themselves."""

from collections.abc import Iterable

from habilis.journal.contract import RunCount, RunFigures, RunInfo, Status

OPEN: frozenset[Status] = frozenset({'queued', 'running', 'waiting'})
"""Runs that are counted whenever they changed."""


def count_runs(infos: Iterable[RunInfo], *, since: float, interval: float, slowest: int) -> RunFigures:
    """See `Store.figures`."""
    counted = [info for info in infos if info.status in OPEN or info.updated >= since]
    groups: dict[tuple[Status, str, int], list[RunInfo]] = {}
    for info in counted:
        number = max(0, int((info.updated - since) // interval))
        groups.setdefault((info.status, info.ended, number), []).append(info)
    counts = [
        RunCount(
            status=status,
            ended=ended,
            interval=number,
            runs=len(found),
            cost=sum(info.cost for info in found),
            seconds=sum(info.seconds for info in found),
        )
        for (status, ended, number), found in sorted(groups.items())
    ]
    longest = sorted(counted, key=lambda info: info.seconds, reverse=True)[:slowest]
    return RunFigures(counts=tuple(counts), slowest=tuple(longest))
