"""A sample report for tests."""

from benchmarks.measurement import Sample
from benchmarks.report import Pair, PeerRow, Report, Row, Target


def sample(value: float) -> Sample:
    """A sample of one measurement."""
    return Sample(median=value, low=value, high=value, repeats=1)


def report(*rows: Row) -> Report:
    """A report of one met target, two peers and these rows."""
    met = Row(key='new', label='new sandbox', unit='ms', value=2.5, spread=sample(2.5), target=Target(bound=3.5))
    fast = Pair(ours=sample(0.002), peer=sample(0.008))
    many = Pair(ours=sample(100), peer=sample(400))
    return Report(
        version='1.2',
        python='3.11.0',
        machine='Linux abacus',
        cores=2,
        load=0.5,
        quick=True,
        rows=(met, *rows),
        peers=(
            PeerRow(peer='turtle 1.0', isolation='a shell', new=fast, new_cold=fast, rate=many),
            PeerRow(peer='hare', isolation='none', unavailable='not installed: pip install hare'),
        ),
    )


MISSED = Row(key='rate', label='sandboxes', unit='/s', value=90, target=Target(bound=500, sense='at least'))
