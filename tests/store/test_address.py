"""Every way to write where a store is."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from surepick.errors import StoreError
from surepick.store import open_store
from surepick.store.address import database_at, parse
from surepick.testing.stores import note


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("trips.db", "trips.db"),
        ("/data/my trips?.db", "/data/my trips?.db"),
        ("C:\\data\\trips.db", "C:\\data\\trips.db"),
        ("sqlite:///trips.db", "trips.db"),
        ("sqlite:///sub/trips.db", "sub/trips.db"),
        ("sqlite:////data/trips.db", "/data/trips.db"),
        ("sqlite:///C:\\data\\trips.db", "C:\\data\\trips.db"),
        ("sqlite:///C:/data/trips.db", "C:/data/trips.db"),
        ("sqlite+pysqlite:///trips.db", "trips.db"),
        ("sqlite:///my%20trips.db", "my trips.db"),
        ("sqlite:////data/a:b@c/trips.db?timeout=5", "/data/a:b@c/trips.db"),
    ],
)
def test_a_file_has_many_addresses(address: str, path: str) -> None:
    assert database_at(address, read_only=False).place == str(Path(path))


@pytest.mark.parametrize(
    ("address", "login"),
    [
        ("postgresql://", ""),
        ("postgresql:///trips", "dbname=trips"),
        ("postgres://db/trips", "host=db|dbname=trips"),
        ("postgresql+psycopg://ann@db/trips", "user=ann|host=db|dbname=trips"),
        ("postgresql://ann:pw@db:5433/a%20b", "user=ann|password=pw|host=db|port=5433|dbname=a b"),
        ("postgresql://ann:a%40b%2Fc%3Ad@db/x", "user=ann|password=a@b/c:d|host=db|dbname=x"),
        ("postgresql://ann:a/b:c?d#e@db/x", "user=ann|password=a/b:c?d#e|host=db|dbname=x"),
        ("postgresql://ann@cloud:pw@db/x", "user=ann@cloud|password=pw|host=db|dbname=x"),
        ("postgresql://ann@[::1]:5433/x", "user=ann|host=::1|port=5433|dbname=x"),
        ("postgresql://postgres:@/x?host=/run/pg", "user=postgres|dbname=x|host=/run/pg"),
        ("postgresql:///x?host=a:1&host=b:2", "dbname=x|host=a,b|port=1,2"),
        ("postgresql:///x?host=a:1", "dbname=x|host=a|port=1"),
        ("postgresql:///x?host=a,b&port=1,2", "dbname=x|host=a,b|port=1,2"),
        (
            "postgresql:///x?options=-csearch_path%3Dmine+-cjit%3Doff",
            "dbname=x|options=-csearch_path=mine -cjit=off",
        ),
        ("postgresql:///x?sslmode=require&connect_timeout=3", "dbname=x|sslmode=require|connect_timeout=3"),
    ],
)
def test_a_database_has_many_addresses(address: str, login: str) -> None:
    assert {f"{name}={part}" for name, part in parse(address).login.items()} == set(
        filter(None, login.split("|"))
    )


@pytest.mark.parametrize(
    "address",
    [
        "mysql://somewhere/db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://data/trips.db",
        "://",
        "postgresql://ann:secret@db:port/x",
        "sqlite:////no/such/folder/a.db",
        "postgresql://nobody:secret@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?password=secret",
        "postgresql://127.0.0.1:1/x?nonsense=secret",
    ],
)
def test_an_address_that_cannot_work_is_explained(address: str) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(address)
    assert "secret" not in str(caught.value).replace("nonsense=secret", "")


def test_a_password_with_every_kind_of_character_opens_the_database(
    postgres_server: str, postgres_url: str
) -> None:
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
