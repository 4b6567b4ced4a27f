"""An embedder without a model, and a writer that is killed."""

import asyncio
import hashlib
import re
import sys
from collections.abc import Sequence

from habilis.memory import Memory

CONCEPTS = {'dog': 0, 'puppy': 0, 'hound': 0, 'car': 1, 'automobile': 1, 'vehicle': 1, 'money': 2, 'salary': 2}


class HashEmbedder:
    """Knows a few synonyms; other words get a direction of their own."""

    def __init__(self, name: str = 'hash', size: int = 64) -> None:
        self.name = name
        self.size = size
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.texts += texts
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> list[float]:
        """The vector of one text."""
        vector = [0.0] * self.size
        for word in re.findall(r'\w+', text.lower()):
            place = CONCEPTS.get(word, 3 + hashlib.sha256(word.encode()).digest()[0] % (self.size - 3))
            vector[place] += 3.0 if word in CONCEPTS else 0.3
        return vector


async def _write(where: str) -> None:
    memory = Memory(where, user='ann')
    number = 0
    while True:
        turn = await memory.add_turn('chat', 'user', f'turn {number}')
        print(turn.id, flush=True)
        number += 1


if __name__ == '__main__':
    asyncio.run(_write(sys.argv[1]))
