"""The C library llama.cpp through ctypes: the structs and functions that `prebuilt.py` uses, of one pinned version.

The layout of a struct differs between versions of llama.cpp, so a library is used only if it names the expected version
and its default parameters have plausible values at the expected places.
"""

import ctypes
import os
import sys
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

VERSION = '0.4.0'
"""Version of llama.cpp whose header these declarations follow."""

ABORTED = 2
"""Result of `llama_decode` that an abort callback has ended."""

MAX_THREADS = 512


class LibraryUnfit(Exception):
    """The library cannot be loaded, or is not the expected version."""


ProgressCallback = ctypes.CFUNCTYPE(c_bool, c_float, c_void_p)
_LogCallback = ctypes.CFUNCTYPE(None, ctypes.c_int, c_char_p, c_void_p)


class ModelParams(ctypes.Structure):
    """`llama_model_params`."""

    _fields_ = (
        ('devices', c_void_p),
        ('tensor_buft_overrides', c_void_p),
        ('n_gpu_layers', c_int32),
        ('split_mode', ctypes.c_int),
        ('load_mode', ctypes.c_int),
        ('lazy_mode', ctypes.c_int),
        ('main_gpu', c_int32),
        ('tensor_split', c_void_p),
        ('progress_callback', ProgressCallback),
        ('progress_callback_user_data', c_void_p),
        ('kv_overrides', c_void_p),
        ('vocab_only', c_bool),
        ('check_tensors', c_bool),
        ('use_extra_bufts', c_bool),
        ('no_host', c_bool),
        ('no_alloc', c_bool),
        ('load_mtp', c_bool),
    )


class ContextParams(ctypes.Structure):
    """`llama_context_params`."""

    _fields_ = (
        *((name, c_uint32) for name in ('n_ctx', 'n_batch', 'n_ubatch', 'n_seq_max', 'n_rs_seq', 'n_outputs_max')),
        ('n_outputs_max_per_seq', c_uint32),
        ('n_threads', c_int32),
        ('n_threads_batch', c_int32),
        *((name, ctypes.c_int) for name in ('ctx_type', 'rope_scaling_type', 'pooling_type', 'attention_type')),
        ('flash_attn_type', ctypes.c_int),
        *((name, c_float) for name in ('rope_freq_base', 'rope_freq_scale', 'yarn_ext_factor', 'yarn_attn_factor')),
        ('yarn_beta_fast', c_float),
        ('yarn_beta_slow', c_float),
        ('yarn_orig_ctx', c_uint32),
        ('defrag_thold', c_float),
        ('cb_eval', c_void_p),
        ('cb_eval_user_data', c_void_p),
        ('type_k', ctypes.c_int),
        ('type_v', ctypes.c_int),
        ('abort_callback', c_void_p),
        ('abort_callback_data', c_void_p),
        *((name, c_bool) for name in ('embeddings', 'offload_kqv', 'no_perf', 'op_offload', 'swa_full', 'kv_unified')),
        ('samplers', c_void_p),
        ('n_samplers', c_size_t),
        ('ctx_other', c_void_p),
    )


class Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_ = (
        ('n_tokens', c_int32),
        ('token', POINTER(c_int32)),
        ('embd', c_void_p),
        ('pos', POINTER(c_int32)),
        ('n_seq_id', POINTER(c_int32)),
        ('seq_id', c_void_p),
        ('logits', POINTER(c_int8)),
    )


class ThreadpoolParams(ctypes.Structure):
    """`ggml_threadpool_params`."""

    _fields_ = (
        ('cpumask', c_bool * MAX_THREADS),
        ('n_threads', ctypes.c_int),
        ('prio', ctypes.c_int),
        ('poll', c_uint32),
        ('strict_cpu', c_bool),
        ('paused', c_bool),
    )


class _ChainParams(ctypes.Structure):
    _fields_ = (('no_perf', c_bool),)


_LLAMA: dict[str, tuple[Any, ...]] = {  # the result, then the arguments
    'llama_version': (c_char_p,),
    'llama_log_set': (None, _LogCallback, c_void_p),
    'llama_backend_init': (None,),
    'llama_model_default_params': (ModelParams,),
    'llama_context_default_params': (ContextParams,),
    'llama_model_load_from_file': (c_void_p, c_char_p, ModelParams),
    'llama_model_free': (None, c_void_p),
    'llama_model_get_vocab': (c_void_p, c_void_p),
    'llama_model_chat_template': (c_char_p, c_void_p, c_char_p),
    'llama_init_from_model': (c_void_p, c_void_p, ContextParams),
    'llama_free': (None, c_void_p),
    'llama_n_ctx': (c_uint32, c_void_p),
    'llama_get_memory': (c_void_p, c_void_p),
    'llama_memory_clear': (None, c_void_p, c_bool),
    'llama_memory_seq_rm': (c_bool, c_void_p, c_int32, c_int32, c_int32),
    'llama_state_seq_get_size': (c_size_t, c_void_p, c_int32),
    'llama_state_seq_get_data': (c_size_t, c_void_p, c_char_p, c_size_t, c_int32),
    'llama_state_seq_set_data': (c_size_t, c_void_p, c_char_p, c_size_t, c_int32),
    'llama_state_seq_save_file': (c_size_t, c_void_p, c_char_p, c_int32, POINTER(c_int32), c_size_t),
    'llama_state_seq_load_file': (
        *(c_size_t, c_void_p, c_char_p, c_int32, POINTER(c_int32), c_size_t, POINTER(c_size_t)),
    ),
    'llama_batch_get_one': (Batch, POINTER(c_int32), c_int32),
    'llama_decode': (c_int32, c_void_p, Batch),
    'llama_set_n_threads': (None, c_void_p, c_int32, c_int32),
    'llama_attach_threadpool': (None, c_void_p, c_void_p, c_void_p),
    'llama_set_abort_callback': (None, c_void_p, c_void_p, c_void_p),
    'llama_vocab_n_tokens': (c_int32, c_void_p),
    'llama_vocab_bos': (c_int32, c_void_p),
    'llama_vocab_eos': (c_int32, c_void_p),
    'llama_vocab_is_eog': (c_bool, c_void_p, c_int32),
    'llama_tokenize': (c_int32, c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool),
    'llama_token_to_piece': (c_int32, c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool),
    'llama_sampler_chain_default_params': (_ChainParams,),
    'llama_sampler_chain_init': (c_void_p, _ChainParams),
    'llama_sampler_chain_add': (None, c_void_p, c_void_p),
    'llama_sampler_sample': (c_int32, c_void_p, c_void_p, c_int32),
    'llama_sampler_free': (None, c_void_p),
    'llama_sampler_init_greedy': (c_void_p,),
    'llama_sampler_init_dist': (c_void_p, c_uint32),
    'llama_sampler_init_top_k': (c_void_p, c_int32),
    'llama_sampler_init_top_p': (c_void_p, c_float, c_size_t),
    'llama_sampler_init_min_p': (c_void_p, c_float, c_size_t),
    'llama_sampler_init_typical': (c_void_p, c_float, c_size_t),
    'llama_sampler_init_temp': (c_void_p, c_float),
    'llama_sampler_init_grammar': (c_void_p, c_void_p, c_char_p, c_char_p),
    'llama_sampler_init_penalties': (c_void_p, c_int32, c_int32, c_float, c_float, c_float),
}
_GGML: dict[str, tuple[Any, ...]] = {
    'ggml_backend_load_all_from_path': (None, c_char_p),
    'ggml_backend_reg_by_name': (c_void_p, c_char_p),
    'ggml_backend_dev_count': (c_size_t,),
}
_GGML_BASE: dict[str, tuple[Any, ...]] = {
    'ggml_backend_reg_get_proc_address': (c_void_p, c_void_p, c_char_p),
    'ggml_threadpool_params_default': (ThreadpoolParams, ctypes.c_int),
}


class LlamaLibrary:
    """The functions of llama.cpp as attributes: `library.llama_decode(...)`."""

    def __init__(self, folder: Path) -> None:
        self.errors: list[str] = []
        """The last error messages of llama.cpp."""

        try:
            # In the order of their dependencies, so that each finds the others already loaded.
            loaded = [_open(folder, pattern) for pattern in ('ggml-base', 'ggml.*v*', 'llama.*v*')]
            for library, functions in zip(loaded, (_GGML_BASE, _GGML, _LLAMA), strict=True):
                for name, (result, *arguments) in functions.items():
                    function = getattr(library, name)
                    function.restype, function.argtypes = result, arguments
                    setattr(self, name, function)
        except (OSError, AttributeError) as error:
            msg = f'cannot load llama.cpp from {folder}: {error}'
            raise LibraryUnfit(msg) from error
        self._log = _LogCallback(self._keep_error)  # C code holds a pointer to it
        self._check_version()
        self.llama_log_set(self._log, None)
        self.llama_backend_init()
        self.ggml_backend_load_all_from_path(bytes(folder))
        if not self.ggml_backend_dev_count():
            msg = f'llama.cpp in {folder} has no code for this processor'
            raise LibraryUnfit(msg)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # for the type checker: functions are set by `__init__`

    def new_threadpool(self, params: ThreadpoolParams) -> int | None:
        """A pool of threads for contexts; None if the CPU backend offers none. The function is in a plug-in."""
        registry = self.ggml_backend_reg_by_name(b'CPU')
        address = self.ggml_backend_reg_get_proc_address(registry, b'ggml_threadpool_new') if registry else None
        if not address:
            return None
        return ctypes.CFUNCTYPE(c_void_p, POINTER(ThreadpoolParams))(address)(ctypes.byref(params))

    def free_threadpool(self, pool: int) -> None:
        """Free a pool of threads."""
        registry = self.ggml_backend_reg_by_name(b'CPU')
        address = self.ggml_backend_reg_get_proc_address(registry, b'ggml_threadpool_free')
        ctypes.CFUNCTYPE(None, c_void_p)(address)(pool)

    def _keep_error(self, level: int, text: bytes, _: object) -> None:
        if level == 4:  # GGML_LOG_LEVEL_ERROR
            self.errors[:] = [*self.errors[-2:], text.decode('utf-8', 'replace').strip()]

    def _check_version(self) -> None:
        found = self.llama_version().decode('utf-8', 'replace')
        model, context = self.llama_model_default_params(), self.llama_context_default_params()
        pool = self.ggml_threadpool_params_default(3)
        plausible = (
            (model.main_gpu, model.kv_overrides, model.use_extra_bufts, model.vocab_only) == (0, None, True, False)
            and (context.n_ctx, context.n_batch, context.n_ubatch, context.n_seq_max) == (512, 2048, 512, 1)
            and (context.yarn_beta_fast, context.yarn_beta_slow, context.type_k) == (-1.0, -1.0, 1)
            and (context.offload_kqv, context.embeddings, context.n_samplers) == (True, False, 0)
            and (pool.n_threads, pool.prio, pool.strict_cpu, pool.paused) == (3, 0, False, False)
        )
        if found.partition('-')[0] != VERSION or not plausible:
            msg = f'expected llama.cpp {VERSION}, found {found}{"" if plausible else " with another layout"}'
            raise LibraryUnfit(msg)


@cache
def open_library(folder: Path) -> LlamaLibrary:
    """The library in a folder, loaded once per process. Raises `LibraryUnfit`."""
    return LlamaLibrary(folder)


def _open(folder: Path, stem: str) -> ctypes.CDLL:
    prefix, suffix = ('', 'dll') if os.name == 'nt' else ('lib', 'dylib' if sys.platform == 'darwin' else 'so')
    found = sorted(folder.glob(f'{prefix}{stem}.{suffix}'))
    if len(found) != 1:
        msg = f'{folder} has {len(found)} files {prefix}{stem}.{suffix}'
        raise OSError(msg)
    return ctypes.CDLL(str(found[0]))
