"""A transaction pooler, as pgbouncer is one: each transaction gets whatever server connection is free."""

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from typing import NamedTuple

_PROTOCOL = 196608  # version 3.0
_SAID_AT_START = {"server_version": "15.0", "client_encoding": "UTF8", "standard_conforming_strings": "on"}


class Message(NamedTuple):
    """One message of the PostgreSQL protocol."""

    kind: bytes
    body: bytes

    def raw(self):
        return self.kind + struct.pack("!I", len(self.body) + 4) + self.body


class Pooler:
    """Serves any number of clients with a few connections, each time the one that has rested longest."""

    def __init__(self, folder, server, login, size=3):
        self._servers = [_connected(server, login) for _ in range(size)]
        self._free = deque(self._servers)
        self._available = threading.Condition()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self.n_transactions = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        for server in self._servers:
            server.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with suppress(OSError, EOFError), client:
            (size,) = struct.unpack("!I", _exactly(client, 4))
            _exactly(client, size - 4)
            client.sendall(_welcome())
            while True:
                self._transaction(client)

    def _transaction(self, client):
        """Relay what the client says, with all answers, until its transaction is over."""
        said = _until(client, b"QSX")
        with self._available:
            self._available.wait_for(lambda: self._free)
            server = self._free.popleft()
            self.n_transactions += 1
        try:
            while True:
                if said[-1].kind == b"X":
                    server.sendall(Message(b"Q", b"ROLLBACK\0").raw())
                    _until(server, b"Z")
                    raise EOFError
                server.sendall(b"".join(message.raw() for message in said))
                answers = _until(server, b"Z")
                client.sendall(b"".join(message.raw() for message in answers))
                if answers[-1].body == b"I":
                    return
                said = _until(client, b"QSX")
        finally:
            with self._available:
                self._free.append(server)
                self._available.notify()


def _welcome():
    """What a server says to a new client; the process number is the pooler's own invention."""
    said = [Message(b"R", struct.pack("!I", 0))]
    said += [Message(b"S", f"{name}\0{value}\0".encode()) for name, value in _SAID_AT_START.items()]
    said += [Message(b"K", struct.pack("!II", 7, 7)), Message(b"Z", b"I")]
    return b"".join(message.raw() for message in said)


def _connected(server, login):
    """A connection to the server, ready for queries; the server must trust who comes."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server)
    words = b"".join(f"{name}\0{value}\0".encode() for name, value in login.items()) + b"\0"
    connection.sendall(struct.pack("!II", len(words) + 8, _PROTOCOL) + words)
    _until(connection, b"Z")
    return connection


def _until(stream, kinds):
    """The next messages up to one of these kinds."""
    messages = []
    while not messages or messages[-1].kind not in kinds:
        kind = _exactly(stream, 1)
        (size,) = struct.unpack("!I", _exactly(stream, 4))
        messages.append(Message(kind, _exactly(stream, size - 4)))
    return messages


def _exactly(stream, size):
    data = b""
    while len(data) < size:
        part = stream.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
