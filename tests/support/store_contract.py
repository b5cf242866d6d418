"""What every store must do; a store passes by subclassing `StoreContract` with its own fixtures."""

import threading
from contextlib import suppress

import pytest

from surepick.errors import ConflictError, DeletedError, NameTakenError, StoreError
from surepick.store import Draft, Head, Lease, Snapshot


def note(text="hello", key=None):
    """An event to append."""
    return Draft("noted", f'{{"text":"{text}"}}', 1.5, key)


def append_held(log, draft):
    """Append an event while the log is held, which never conflicts."""
    seen = log.head()
    with log.transaction(after=seen) as view:
        return log.append([draft], expected=view.events[-1].head if view.events else seen)


class StoreContract:
    """The laws of a store; subclasses provide the fixtures `store` and, where it lasts, `reopen`."""

    @pytest.fixture
    def store(self):
        raise NotImplementedError

    @pytest.fixture
    def log(self, store):
        return store.create("trips", [note("first", "k")])

    def test_logs_are_listed_oldest_first_and_a_name_is_taken_once(self, store):
        assert store.names() == []
        for name in ("zinc", "copper", "ein Müsli / 'x' %s :y"):
            head = store.create(name, [note()]).head()
            with pytest.raises(NameTakenError):
                store.create(name, [note("other")])
            assert store.log(name).head() == head
        assert store.names() == ["zinc", "copper", "ein Müsli / 'x' %s :y"]
        with pytest.raises(StoreError):
            store.log("zink")

    def test_a_whole_log_is_deleted_only_where_it_was_seen_to_end(self, store, log):
        other = store.create("other", [note()])
        head = log.head()
        later = log.append([note()], expected=head)
        with pytest.raises(ConflictError):
            log.delete(expected=head)
        assert log.head() == later
        log.delete(expected=later)
        assert store.names() == ["other"]
        assert other.head().position == 1

    def test_after_its_deletion_a_log_is_not_another_one_of_its_name(self, store, log):
        head = log.append([note("second")], expected=log.head())
        assert log.claim(["0.0"], worker="Ann", until=9.0, now=1.0) == ["0.0"]
        snapshot = Snapshot(head, b"{}")
        log.save_snapshot(snapshot)
        assert log.snapshot() is not None
        log.delete(expected=head)
        for again in (False, True):
            if again:
                other = store.create("trips", [note("first", "k"), note("second"), note("third")])
            for attempt in (
                log.head,
                lambda: list(log.read()),
                lambda: list(log.read(after=head)),
                lambda: log.look(after=head),
                lambda: log.find("k"),
                lambda: log.append([note()], expected=head),
                lambda: log.claim(["0.1"], worker="Ann", until=9.0, now=1.0),
                lambda: log.delete(expected=head),
                log.transaction(after=head).__enter__,
            ):
                with pytest.raises(DeletedError):
                    attempt()
            with suppress(DeletedError):
                log.save_snapshot(snapshot)
            with suppress(DeletedError):
                log.release(["0.0"])
        assert [event.position for event in other.read()] == [1, 2, 3]
        assert other.leases() == []
        assert other.snapshot() is None
        assert store.log("trips").head() == other.head()

    def test_a_snapshot_of_another_log_is_neither_kept_nor_read(self, log):
        head = log.append([note("second")], expected=log.head())
        for wrong in (Snapshot(Head(2, "f" * 64), b"{}"), Snapshot(Head(3, head.checksum), b"{}")):
            log.save_snapshot(wrong)
            assert log.snapshot() is None
        for body in (b"{}", bytes(range(256)) * 100):
            log.save_snapshot(Snapshot(head, body))
            assert log.snapshot() == Snapshot(head, body)

    def test_what_is_appended_is_read_back_in_order(self, store, log):
        log.append([note("ü\\n %s :x {}"), note("third", "l")], expected=log.head())
        events = list(log.read())
        assert [e.position for e in events] == [1, 2, 3]
        texts = ("first", "ü\\n %s :x {}", "third")
        assert [e.body for e in events] == [f'{{"text":"{text}"}}' for text in texts]
        assert [e.key for e in events] == ["k", None, "l"]
        assert (events[0].time, events[0].kind) == (1.5, "noted")
        times = [0.1, 1794775637.5173495, 1 / 3, 1e-300, 12345678901.25]  # to the last bit
        timed = store.create("times", [Draft("noted", "{}", time) for time in times])
        assert [event.time for event in timed.read()] == times

    def test_a_long_log_is_read_whole_or_after_a_head(self, log):
        first = log.head()
        middle = log.append([note()] * 6000, expected=first)
        last = log.append([note("rest")], expected=middle)
        assert sum(1 for _ in log.read()) == 6002
        assert len(log.look(after=first).events) == 6001
        assert [event.body for event in log.read(after=middle)] == ['{"text":"rest"}']
        assert list(log.read(after=last)) == []
        assert len(list(log.read(limit=2))) == 2
        assert (log.head(), log.head(at=1)) == (last, first)

    def test_an_append_at_an_old_position_is_refused_and_writes_nothing(self, log):
        old = log.head()
        new = log.append([note("winner")], expected=old)
        with pytest.raises(ConflictError):
            log.append([note("loser")], expected=old)
        with pytest.raises(ConflictError):
            log.append([note()], expected=Head(new.position, "f" * 64))
        assert log.head() == new
        assert len(list(log.read())) == 2
        assert log.append([], expected=new) == new

    def test_a_key_is_used_once_per_log_and_the_whole_batch_is_refused(self, store, log):
        head = log.head()
        with pytest.raises(ConflictError):
            log.append([note("fresh", "l"), note("again", "k")], expected=head)
        assert log.find("l") is None
        assert log.head() == head
        log.append([note("fresh", "l")], expected=head)
        store.create("other", [note("first", "k")])
        with pytest.raises(ConflictError):
            store.create("third", [note("a", "k"), note("b", "k")])
        assert store.names() == ["trips", "other"]

    def test_find_gives_the_event_of_a_key(self, log):
        log.append([note("b", "l")], expected=log.head())
        assert log.find("l") == list(log.read())[1]
        assert log.find("z") is None

    def test_equal_events_give_equal_fingerprints_and_different_ones_do_not(self, store):
        heads = {name: store.create(name, [note("same"), note("same")]).head() for name in ("a", "b")}
        assert heads["a"] == heads["b"]
        assert store.create("c", [note("same"), note("other")]).head() != heads["a"]

    def test_an_append_ends_a_transaction_and_an_error_before_it_leaves_no_trace(self, log):
        head = log.head()
        for fails in (True, False):
            with suppress(RuntimeError), log.transaction(after=head):
                assert log.head() == head
                if fails:
                    raise RuntimeError
                end = log.append([note("a", "l")], expected=head)
                assert log.head() == end
            assert log.head() == (head if fails else end)
        with pytest.raises(ConflictError), log.transaction(after=head) as view:
            log.append([note("b")], expected=head)
        assert [event.head for event in view.events] == [log.head()] == [end]

    def test_a_look_gives_the_news_and_the_leases(self, log):
        head = log.head()
        log.claim(["t2", "t1"], worker="one", now=0.0, until=10.0)
        new = log.append([note("c")], expected=head)
        view = log.look(after=head)
        assert view.events == list(log.read(after=head))
        assert view.leases == log.leases() == [Lease("t1", "one", 10.0), Lease("t2", "one", 10.0)]
        assert log.look(after=new).events == []
        with log.transaction(after=head) as seen:
            assert seen == view

    def test_leases_can_be_claimed_while_the_log_is_held(self, log):
        with log.transaction(after=log.head(), durable=False) as view:
            assert view.leases == []
            assert log.claim(["a", "b"], worker="one", now=0.0, until=10.0) == ["a", "b"]
            log.release(["a"])
        assert [lease.token for lease in log.leases()] == ["b"]

    def test_a_claimed_token_is_its_workers_until_the_lease_ends(self, log):
        assert log.claim(["a", "b"], worker="one", now=0.0, until=10.0) == ["a", "b"]
        assert log.claim(["b", "c"], worker="two", now=5.0, until=15.0) == ["c"]
        assert log.claim(["b"], worker="one", now=5.0, until=15.0) == ["b"]
        assert log.claim(["a", "b"], worker="two", now=10.0, until=20.0) == ["a"]
        held = [("a", "two", 20.0), ("b", "one", 15.0), ("c", "two", 15.0)]
        assert log.leases() == [Lease(*one) for one in held]
        log.release(["a", "never held"])
        assert [lease.token for lease in log.leases()] == ["b", "c"]

    def test_leases_end_with_the_append_that_answers_them_or_not_at_all(self, log):
        log.claim(["a", "b", "c"], worker="one", now=0.0, until=10.0)
        with pytest.raises(ConflictError):
            log.append([note()], expected=Head(7, "f" * 32), release=["a"])
        assert len(log.leases()) == 3
        log.append([note()], expected=log.head(), release=["a", "c"])
        assert [lease.token for lease in log.leases()] == ["b"]

    def test_of_many_threads_one_gets_the_token(self, log):
        winners: list[str] = []

        def work(i):
            for j in range(20):
                won = log.claim([f"t{j}"], worker=str(i), now=0.0, until=10.0)
                winners.extend(won)

        in_threads(4, work)
        assert sorted(winners) == sorted(f"t{j}" for j in range(20))

    def test_threads_lose_no_update(self, log):
        def work(i):
            for j in range(20):
                append_patiently(log, f"{i}-{j}")
                append_held(log, note(key=f"{i}+{j}"))

        in_threads(4, work)
        keys = [str(event.key) for event in log.read()][1:]
        assert sorted(keys) == sorted(f"{i}{sign}{j}" for i in range(4) for j in range(20) for sign in "+-")


class LastingStoreContract(StoreContract):
    """The further laws of a store that outlives the program; `reopen` opens the same place again."""

    @pytest.fixture
    def reopen(self):
        raise NotImplementedError

    def test_a_reopened_store_has_everything_and_two_openings_see_each_other(self, store, log, reopen):
        other = reopen().log("trips")
        before = list(log.read())
        store.close()
        store.close()
        assert log.head() == other.head()  # opened again when needed
        assert list(other.read()) == before
        assert other.find("k") == before[0]
        head = other.append([note("from the other")], expected=other.head())
        assert log.head() == head


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


def append_patiently(log, key):
    """Append an event with this key, however often another writer is faster."""
    while True:
        try:
            log.append([note(key=key)], expected=log.head())
            return
        except ConflictError:
            assert log.find(key) is None
