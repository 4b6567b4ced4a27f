"""The store of a run: one that was given, one by its address, or the default."""

from dataclasses import dataclass

from habilis.journal import Store


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A store, and whether it was opened for this run alone."""

    store: Store
    owned: bool

    async def close(self) -> None:
        """Free what was opened."""
        if self.owned:
            await self.store.close()


async def opened_store(journal: Store | str | None) -> Opened:
    """The store itself, or what is at this address; None for what the settings say."""
    if journal is not None and not isinstance(journal, str):
        return Opened(store=journal, owned=False)
    from habilis.core.settings import load_settings
    from habilis.journal.opening import open_store

    return Opened(store=open_store(load_settings().journal if journal is None else journal), owned=True)
