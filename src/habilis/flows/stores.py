"""The store of a run: a given one, one by its URL, or the default of the settings."""

from dataclasses import dataclass

from habilis.journal import Store


@dataclass(frozen=True, kw_only=True)
class StoreHandle:
    """A store, and whether closing the handle closes it."""

    store: Store
    owned: bool

    async def close(self) -> None:
        """Close the store if it was opened for this handle."""
        if self.owned:
            await self.store.close()


async def store_handle(journal: Store | str | None) -> StoreHandle:
    """A handle of the given store, or of the store at this URL; None for the one in the settings."""
    if journal is not None and not isinstance(journal, str):
        return StoreHandle(store=journal, owned=False)
    from habilis.core.settings import load_settings
    from habilis.journal.stores.urls import open_store

    return StoreHandle(store=open_store(load_settings().journal if journal is None else journal), owned=True)
