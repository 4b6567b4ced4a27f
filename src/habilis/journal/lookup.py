"""Lookups in a store: the info of a user's run, and the value of a record."""

from habilis.core import codec
from habilis.core.codec import Json
from habilis.journal.contract import Record, RunInfo, Store
from habilis.journal.errors import run_not_found


async def info_of(store: Store, run: str, user: str | None) -> RunInfo:
    """The info of a run. Raises `RunNotFound`, also if the run belongs to another user."""
    info = await store.info(run)
    check_user(info, user)
    return info


def check_user(info: RunInfo, user: str | None) -> None:
    """Raise `RunNotFound` if the run belongs to another user. None: any user."""
    if user is not None and info.user != user:
        raise run_not_found(info.run)


async def value_of(store: Store, run: str, record: Record) -> Json:
    """The value of a record, read from its blob if it has one. Raises `CorruptRecord`."""
    if not record.blob:
        return record.value
    return codec.parse((await store.blob(run, record.blob)).decode())
