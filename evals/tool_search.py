"""How well tools are found: `python -m evals.tool_search`. Needs no model; with the extra `embeddings`, meaning counts.

Each tool that comes with Habilis has two requests (`tool_requests.toml`). A weight counts only if it is as good on the
half of the tools that was not used to choose it. Requests of `families.toml` need none of these tools: they show which
scores are noise.
"""

import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from evals.library import load_families
from evals.scores import aligned
from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seeds
from habilis.memory.minilm import find_embedder

Rank = Callable[[Mapping[str, float], Mapping[str, float]], dict[str, float]]
"""Scores by words and by meaning, as one score for each tool."""

WEIGHTS = (0.0, 0.35, 0.5, 0.6, 2 / 3, 0.75, 0.85, 1.0)
RANK_CONSTANT = 60


def load_requests() -> dict[str, list[str]]:
    """The requests for each tool."""
    return tomllib.loads(Path(__file__).with_name('tool_requests.toml').read_text('utf-8'))


def weighted(weight: float) -> Rank:
    """The mean with this weight of meaning."""
    return lambda words, meaning: {
        name: weight * meaning.get(name, 0) + (1 - weight) * words.get(name, 0) for name in {*words, *meaning}
    }


def fused(words: Mapping[str, float], meaning: Mapping[str, float]) -> dict[str, float]:
    """Reciprocal rank fusion, without weights."""
    found: dict[str, float] = {}
    for scores in (words, meaning):
        for rank, name in enumerate(sorted(scores, key=lambda one: -scores[one]), 1):
            found[name] = found.get(name, 0) + 1 / (RANK_CONSTANT + rank)
    return found


def recall(rank: Rank, scores: Mapping[tuple[str, str], Sequence[Mapping[str, float]]], limit: int) -> float:
    """Share of the requests whose tool is among the first."""
    hits = 0
    for (name, _), (words, meaning) in scores.items():
        found = rank(words, meaning)
        hits += name in sorted(found, key=lambda one: -found[one])[:limit]
    return hits / len(scores)


def main() -> None:
    """For `python -m evals.tool_search`."""
    with tempfile.TemporaryDirectory() as folder:
        library = Library(folder, embedder=find_embedder())
        for seed in seeds().values():
            library.add(seed)
        requests = {(name, text): library.scores(text) for name, texts in load_requests().items() for text in texts}
        names = list(load_requests())
        halves = [{key: one for key, one in requests.items() if key[0] in names[half::2]} for half in (0, 1)]
        ranks = {f'weight {one:.2f}': weighted(one) for one in WEIGHTS} | {'rank fusion': fused}
        rows = [('', 'half A @1', '@3', 'half B @1', '@3')] + [
            (label, *(f'{recall(rank, half, limit):.1%}' for half in halves for limit in (1, 3)))
            for label, rank in ranks.items()
        ]
        print(aligned(rows))
        wanted = [
            {one.name: one.score for one in library.search(text, limit=45)}.get(name, 0) for name, text in requests
        ]
        noise = [
            max((one.score for one in library.search(task.text)), default=0.0)
            for tasks in load_families().values()
            for task in tasks
        ]
    print('\nthreshold  wanted tools kept  requests without a tool that are told of one')
    for threshold in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4):
        kept, told = (sum(one >= threshold for one in scores) / len(scores) for scores in (wanted, noise))
        print(f'{threshold:9} {kept:18.1%} {told:45.1%}')


if __name__ == '__main__':
    main()
