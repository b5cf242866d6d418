"""Memory, SQLite and PostgreSQL keep the same contract."""

from functools import partial

import pytest

from store_contract import LastingStoreContract, StoreContract
from surepick.store import open_store


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self):
        return open_store("memory://")


class TestSqlite(LastingStoreContract):
    @pytest.fixture
    def store(self, sqlite_url):
        store = open_store(sqlite_url)
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, sqlite_url):
        return partial(open_store, sqlite_url)


class TestPostgres(LastingStoreContract):
    @pytest.fixture
    def store(self, postgres_url):
        store = open_store(postgres_url)
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, postgres_url):
        return partial(open_store, postgres_url)
