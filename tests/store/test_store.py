"""Memory, SQLite and PostgreSQL keep the same contract."""

from functools import partial

import pytest

from store_contract import LastingStoreContract, StoreContract
from surepick.store import open_store


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self):
        return open_store("memory://")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
class TestLasting(LastingStoreContract):
    @pytest.fixture
    def reopen(self, kind, request):
        return partial(open_store, request.getfixturevalue(f"{kind}_url"))

    @pytest.fixture
    def store(self, reopen):
        store = reopen()
        yield store
        store.close()
