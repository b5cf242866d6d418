"""What every store must do; a store passes by subclassing `StoreContract` with its own fixtures."""

import threading
from contextlib import suppress
from functools import partial

import pytest

from surepick.errors import ConflictError, DeletedError, NameTakenError, StoreError
from surepick.store import START, Draft, Head, Lease, Snapshot


def note(text="hello", key=None):
    """An event to append."""
    return Draft("noted", f'{{"text":"{text}"}}', 1.5, key)


class StoreContract:
    """The laws of a store; subclasses provide the fixtures `store` and, where it lasts, `reopen`."""

    @pytest.fixture
    def store(self):
        raise NotImplementedError

    def test_logs_are_listed_oldest_first(self, store):
        assert store.names() == []
        for name in ("zinc", "copper", "ein Müsli / 'x' %s :y"):
            store.create(name, [note()])
        assert store.names() == ["zinc", "copper", "ein Müsli / 'x' %s :y"]

    def test_a_name_is_taken_once(self, store):
        head = store.create("trips", [note()])
        with pytest.raises(NameTakenError):
            store.create("trips", [note("other")])
        assert store.head("trips") == head

    def test_an_unknown_name_is_refused_with_the_closest_one(self, store):
        store.create("trips", [note()])
        for attempt in (
            lambda: store.head("tripz"),
            lambda: list(store.read("tripz")),
            lambda: store.find("tripz", "a"),
            lambda: store.append("tripz", [note()], expected=START),
        ):
            with pytest.raises(StoreError):
                attempt()

    def test_a_whole_log_is_deleted_only_where_it_was_seen_to_end(self, store):
        head = store.create("trips", [note("first", "k")])
        store.claim("trips", ["0.0"], worker="Ann", until=9.0, now=1.0)
        store.save_snapshot("trips", Snapshot(head, b"{}"))
        assert store.snapshot("trips") is not None
        other = store.create("other", [note()])
        later = store.append("trips", [note()], expected=head)
        with pytest.raises(ConflictError):
            store.delete("trips", expected=head)
        assert store.head("trips") == later
        store.delete("trips", expected=later)
        assert store.names() == ["other"]
        assert store.head("other") == other
        with pytest.raises(StoreError):
            store.append("trips", [note()], expected=later)
        assert store.create("trips", [note("again", "k")]).position == 1
        assert [event.body for event in store.read("trips")] == ['{"text":"again"}']
        assert store.leases("trips") == []
        assert store.snapshot("trips") is None
        with pytest.raises(StoreError):
            store.append("trips", [note()], expected=later)

    def test_a_pinned_name_is_that_log_alone(self, store):
        head = store.create("trips", [note("first", "k"), note("second")])
        store.create("other", [note()])
        pinned = store.pin("trips")
        assert pinned.head("trips") == head
        assert pinned.claim("trips", ["0.0"], worker="Ann", until=9.0, now=1.0) == ["0.0"]
        snapshot = Snapshot(head, b"{}")
        store.delete("trips", expected=head)
        for again in (False, True):
            if again:
                pinned.create("trips", [note("first", "k"), note("second"), note("third")])
            for attempt in (
                lambda: pinned.head("trips"),
                lambda: list(pinned.read("trips")),
                lambda: list(pinned.read("trips", after=head)),
                lambda: pinned.look("trips", after=head),
                lambda: pinned.find("trips", "k"),
                lambda: pinned.append("trips", [note()], expected=head),
                lambda: pinned.claim("trips", ["0.1"], worker="Ann", until=9.0, now=1.0),
                lambda: pinned.delete("trips", expected=head),
                pinned.transaction("trips", after=head).__enter__,
            ):
                with pytest.raises(DeletedError):
                    attempt()
            with suppress(DeletedError):
                pinned.save_snapshot("trips", snapshot)
            with suppress(DeletedError):
                pinned.release("trips", ["0.0"])
        assert store.head("trips").position == 3
        assert store.leases("trips") == []
        assert store.snapshot("trips") is None
        assert pinned.head("other").position == 1
        assert pinned.names() == ["other", "trips"]
        assert pinned.pin("trips").head("trips") == store.head("trips")

    def test_a_snapshot_of_another_log_is_neither_kept_nor_read(self, store):
        head = store.create("trips", [note("first"), note("second")])
        for wrong in (Snapshot(Head(2, "f" * 64), b"{}"), Snapshot(Head(3, head.checksum), b"{}")):
            store.save_snapshot("trips", wrong)
            assert store.snapshot("trips") is None
        for body in (b"{}", bytes(range(256)) * 100):
            store.save_snapshot("trips", Snapshot(head, body))
            assert store.snapshot("trips") == Snapshot(head, body)

    def test_what_is_appended_is_read_back_in_order(self, store):
        head = store.create("trips", [note("first")])
        store.append("trips", [note('ü\\n %s :x {}"'.replace('"', "")), note("third", "k")], expected=head)
        events = list(store.read("trips"))
        assert [e.position for e in events] == [1, 2, 3]
        texts = ("first", "ü\\n %s :x {}", "third")
        assert [e.body for e in events] == [f'{{"text":"{text}"}}' for text in texts]
        assert [e.key for e in events] == [None, None, "k"]
        assert (events[0].time, events[0].kind) == (1.5, "noted")
        times = [0.1, 1794775637.5173495, 1 / 3, 1e-300, 12345678901.25]  # to the last bit
        store.create("times", [Draft("noted", "{}", time) for time in times])
        assert [event.time for event in store.read("times")] == times

    def test_a_long_log_is_read_whole_or_after_a_head(self, store):
        first = store.create("trips", [note()])
        middle = store.append("trips", [note()] * 6000, expected=first)
        last = store.append("trips", [note("rest")], expected=middle)
        assert sum(1 for _ in store.read("trips")) == 6002
        assert len(store.look("trips", after=first).events) == 6001
        assert [event.body for event in store.read("trips", after=middle)] == ['{"text":"rest"}']
        assert list(store.read("trips", after=last)) == []

    def test_an_append_at_an_old_position_is_refused_and_writes_nothing(self, store):
        old = store.create("trips", [note()])
        new = store.append("trips", [note("winner")], expected=old)
        with pytest.raises(ConflictError):
            store.append("trips", [note("loser")], expected=old)
        with pytest.raises(ConflictError):
            store.append("trips", [note()], expected=Head(new.position, "f" * 64))
        assert store.head("trips") == new
        assert len(list(store.read("trips"))) == 2
        assert store.append("trips", [], expected=new) == new

    def test_a_key_is_used_once_per_log_and_the_whole_batch_is_refused(self, store):
        head = store.create("trips", [note("first", "told:1")])
        with pytest.raises(ConflictError):
            store.append("trips", [note("fresh", "told:2"), note("again", "told:1")], expected=head)
        assert store.find("trips", "told:2") is None
        assert store.head("trips") == head
        store.append("trips", [note("fresh", "told:2")], expected=head)
        store.create("other", [note("first", "told:1")])

    def test_find_gives_the_event_of_a_key(self, store):
        store.create("trips", [note("a", "x"), note("b", "y")])
        found = store.find("trips", "y")
        assert found is not None
        assert found == list(store.read("trips"))[1]
        assert store.find("trips", "z") is None

    def test_equal_events_give_equal_fingerprints_and_different_ones_do_not(self, store):
        heads = {name: store.create(name, [note("same"), note("same")]) for name in ("a", "b")}
        assert heads["a"] == heads["b"]
        assert store.create("c", [note("same"), note("other")]) != heads["a"]

    def test_what_is_written_in_a_transaction_comes_at_once(self, store):
        head = store.create("trips", [note()])
        with store.transaction("trips"):
            middle = store.append("trips", [note("a")], expected=head)
            assert store.head("trips") == middle
            assert len(list(store.read("trips"))) == 2
            end = store.append("trips", [note("b", "k")], expected=middle)
        assert store.head("trips") == end

    def test_an_error_in_a_transaction_leaves_no_trace(self, store):
        head = store.create("trips", [note()])

        def fail():
            with store.transaction("trips"):
                store.append("trips", [note("a", "k")], expected=head)
                raise RuntimeError("stop")

        with pytest.raises(RuntimeError, match="stop"):
            fail()
        assert store.head("trips") == head
        assert store.find("trips", "k") is None
        store.append("trips", [note("a", "k")], expected=head)

    def test_a_look_gives_the_news_and_the_leases(self, store):
        head = store.create("trips", [note("a"), note("b")])
        store.claim("trips", ["t2", "t1"], worker="one", now=0.0, until=10.0)
        new = store.append("trips", [note("c")], expected=head)
        view = store.look("trips", after=head)
        assert view.events == list(store.read("trips", after=head))
        assert view.leases == store.leases("trips") == [Lease("t1", "one", 10.0), Lease("t2", "one", 10.0)]
        assert store.look("trips", after=new).events == []
        with store.transaction("trips", after=head) as seen:
            assert seen == view
        assert len(list(store.read("trips", limit=2))) == 2

    def test_leases_can_be_claimed_while_the_log_is_held(self, store):
        head = store.create("trips", [note()])
        with store.transaction("trips", after=head, durable=False) as view:
            assert view.leases == []
            assert store.claim("trips", ["a", "b"], worker="one", now=0.0, until=10.0) == ["a", "b"]
        assert [lease.token for lease in store.leases("trips")] == ["a", "b"]

    def test_a_claimed_token_is_its_workers_until_the_lease_ends(self, store):
        store.create("trips", [note()])
        claim = partial(store.claim, "trips")
        assert claim(["a", "b"], worker="one", now=0.0, until=10.0) == ["a", "b"]
        assert claim(["b", "c"], worker="two", now=5.0, until=15.0) == ["c"]
        assert claim(["b"], worker="one", now=5.0, until=15.0) == ["b"]
        assert claim(["a", "b"], worker="two", now=10.0, until=20.0) == ["a"]
        held = [("a", "two", 20.0), ("b", "one", 15.0), ("c", "two", 15.0)]
        assert store.leases("trips") == [Lease(*one) for one in held]

    def test_a_released_token_is_free(self, store):
        store.create("trips", [note()])
        store.claim("trips", ["a", "b"], worker="one", now=0.0, until=10.0)
        store.release("trips", ["a", "never held"])
        assert [lease.token for lease in store.leases("trips")] == ["b"]

    def test_leases_end_with_the_append_that_answers_them_or_not_at_all(self, store):
        head = store.create("trips", [note()])
        store.claim("trips", ["a", "b", "c"], worker="one", now=0.0, until=10.0)
        with pytest.raises(ConflictError):
            store.append("trips", [note()], expected=Head(7, "f" * 32), release=["a"])
        assert len(store.leases("trips")) == 3
        store.append("trips", [note()], expected=head, release=["a", "c"])
        assert [lease.token for lease in store.leases("trips")] == ["b"]

    def test_of_many_threads_one_gets_the_token(self, store):
        store.create("trips", [note()])
        winners: list[str] = []

        def work(i):
            for j in range(20):
                won = store.claim("trips", [f"t{j}"], worker=str(i), now=0.0, until=10.0)
                winners.extend(won)

        in_threads(4, work)
        assert sorted(winners) == sorted(f"t{j}" for j in range(20))

    def test_threads_lose_no_update(self, store):
        store.create("trips", [note()])

        def work(i):
            for j in range(20):
                append_patiently(store, f"{i}-{j}")
                with store.transaction("trips"):  # which never conflicts
                    store.append("trips", [note(key=f"{i}+{j}")], expected=store.head("trips"))

        in_threads(4, work)
        keys = [str(event.key) for event in store.read("trips")][1:]
        assert sorted(keys) == sorted(f"{i}{sign}{j}" for i in range(4) for j in range(20) for sign in "+-")

    def test_a_thread_may_disconnect_and_go_on(self, store):
        head = store.create("trips", [note()])
        store.disconnect()
        with store.transaction("trips"):
            head = store.append("trips", [note("a")], expected=head)
            store.disconnect()
            head = store.append("trips", [note("b")], expected=head)
        store.disconnect()
        assert store.head("trips") == head


class LastingStoreContract(StoreContract):
    """The further laws of a store that outlives the program; `reopen` opens the same place again."""

    @pytest.fixture
    def reopen(self):
        raise NotImplementedError

    def test_a_reopened_store_has_everything(self, store, reopen):
        head = store.create("trips", [note("a", "k"), note("b")])
        before = list(store.read("trips"))
        store.close()
        store.close()
        assert store.head("trips") == head  # opened again when needed
        again = reopen()
        assert again.head("trips") == head
        assert list(again.read("trips")) == before
        assert again.find("trips", "k") == before[0]

    def test_two_openings_see_each_other(self, store, reopen):
        other = reopen()
        head = store.create("trips", [note()])
        assert other.head("trips") == head
        head = other.append("trips", [note("from the other")], expected=head)
        assert [event.body for event in store.read("trips")][-1] == '{"text":"from the other"}'


def in_threads(count, work):
    """Run work(0), ..., work(count - 1) at the same time and raise what any of them raises."""
    errors: list[BaseException] = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def append_patiently(store, key):
    """Append an event with this key, however often another writer is faster."""
    while True:
        try:
            store.append("trips", [note(key=key)], expected=store.head("trips"))
            return
        except ConflictError:
            assert store.find("trips", key) is None
