"""Every way to write where a store is."""

from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from store_contract import note
from surepick.errors import StoreError
from surepick.store import open_store
from surepick.store.sql import database_at


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("trips.db", "trips.db"),
        ("/data/my trips?.db", "/data/my trips?.db"),
        ("C:\\data\\trips.db", "C:\\data\\trips.db"),
        ("sqlite:///sub/trips.db", "sub/trips.db"),
        ("sqlite:////data/trips.db", "/data/trips.db"),
        ("sqlite:///C:/data/trips.db", "C:/data/trips.db"),
        ("sqlite+pysqlite:///my%20trips.db", "my trips.db"),
        ("sqlite:////data/a:b@c/trips.db?timeout=5", "/data/a:b@c/trips.db"),
    ],
)
def test_a_file_has_many_addresses(address, path):
    assert database_at(address, read_only=False).place == str(Path(path))


@pytest.mark.parametrize(
    "address",
    [
        "mysql://somewhere/db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://data/trips.db",
        "://",
        "trips\0.db",
        "sqlite:////no/such/folder/a.db",
        "postgresql://ann:secret@db:port/x",
        "postgresql://ann:secret/more@db/x",
        "postgresql://ann@cloud:secret@db/x",
        "postgresql://ann:%zzsecret@db/x",
        "postgresql://nobody:secret@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?password=secret",
        "postgresql://127.0.0.1:1/x?nonsense=1",
    ],
)
def test_an_address_that_cannot_work_is_refused_without_its_password(address):
    with pytest.raises(StoreError) as caught:
        open_store(address)
    assert "secret" not in str(caught.value)


def test_a_password_with_every_kind_of_character_opens_the_database(postgres_server, postgres_url):
    password = "a@b:c/d?e#f%g&h=i+j k'l\"m\\n"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute('DROP ROLE IF EXISTS "ann@home"')
        admin.execute(psycopg.sql.SQL('CREATE ROLE "ann@home" SUPERUSER LOGIN PASSWORD {}').format(password))
    try:
        login = f"{quote('ann@home', safe='')}:{quote(password, safe='')}"
        for kind in ("postgresql", "postgresql+psycopg", "postgres"):
            url = postgres_url.replace("postgresql://postgres:", f"{kind}://{login}")
            assert url != postgres_url
            store = open_store(url)
            store.create(kind, [note()])
            assert "***" in store.place
            store.close()
        assert len(open_store(postgres_url).names()) == 3
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as admin:
            admin.execute('DROP OWNED BY "ann@home"')
            admin.execute('DROP ROLE "ann@home"')
