"""The only writer: applies changes in order, writes them to disk, and only then shows them to readers."""

import logging
import queue
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from threading import Event, Thread
from typing import Any

from spinegraph.apps.server.live import Change, Live, Snapshot, encoded
from spinegraph.apps.server.store import Entry, Store
from spinegraph.errors import GraphFormatError, SpineError

logger = logging.getLogger(__name__)
_MAX_BATCH = 64  # changes in one transaction
_MANY_READS, _APART = 200, 0.05  # reads per second above which batches start this many seconds apart
_SAVE_EVERY = 2_000  # changes, so that a restart replays few more than this
_MAX_ADDED, _MAX_REMOVED = 10_000, 500  # nodes, above which the store is compacted
MAY_BE_STORED = (
    "the change may have been stored: send it again with the same Idempotency-Key, which never applies it "
    "twice, or, without a key, check whether it is there"
)
_PAUSES = (0.05, 1.0)  # seconds between attempts to reopen the store: the first, and the longest


class ClosedError(SpineError):
    """The service accepts no changes: it is stopping or busy, or its store failed."""


class OutcomeUnknownError(SpineError):
    """The service could not find out whether a change was stored."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; {MAY_BE_STORED}")


@dataclass(frozen=True, eq=False)
class _Task:
    done: "Future[Snapshot]"
    change: Change | None  # None: compact


Results = dict[_Task, Snapshot | Exception]


class Writer(Thread):
    """Applies changes from a queue of at most ``waiting`` in its own thread.

    After every batch, and after every update of waiting vectors, it calls ``on_batch`` with the new snapshot,
    the number of changes and the time taken.

    A change is written before it is applied. After a disk error nothing is written until the store could be
    reopened, which shows whether it has the last changes; meanwhile other changes are rejected. If applying a
    change that is on disk fails, ``rebuild`` rebuilds the state from the store. ``num_reads`` returns the
    number of requests answered from snapshots so far; ``prepare`` is called before the first change.
    """

    def __init__(
        self,
        live: Live,
        store: Store,
        *,
        waiting: int = 1024,
        on_batch: Callable[[Snapshot, int, float], None] = lambda snapshot, changes, seconds: None,
        rebuild: Callable[[], Live] | None = None,
        num_reads: Callable[[], int] = lambda: 0,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="writer", daemon=True)
        self.live, self.store = live, store
        self.snapshot = live.snapshot  # for readers; replaced, never modified
        self.fault: str | None = None
        self._queue: queue.SimpleQueue[_Task | Future[Any] | None] = queue.SimpleQueue()
        self._max_waiting = waiting
        self._refresher = ThreadPoolExecutor(1, "refresher")
        self._refreshing: Future[Any] | None = None
        self._on_batch, self._rebuild = on_batch, rebuild
        self._num_reads, self._prepare = num_reads, prepare
        self.is_prepared = False
        self._began, self._reads = 0.0, 0  # time of the last batch, and number of reads by then
        self._is_torn = False  # whether the state in memory is not that of any version
        self._is_busy = False  # whether changes arrived since the last update of waiting vectors
        self._closing, self._pause, self._rest = Event(), _PAUSES[0], 0.0
        self._saving: Thread | None = None
        self._saved, self._save_every = store.state_version or 0, _SAVE_EVERY

    @property
    def waiting(self) -> int:
        """Number of queued changes."""
        return self._queue.qsize()

    def submit(self, change: Change | None) -> "Future[Snapshot]":
        """Queue a change, or None to compact; the future is done once readers see what is on disk."""
        if self.fault is not None:
            raise ClosedError(self.fault)
        if self.waiting >= self._max_waiting:
            raise ClosedError(f"{self._max_waiting} changes are already waiting; try again in a second")
        task = _Task(Future(), change)
        self._queue.put(task)
        return task.done

    def is_applied(self, key: list[str] | None) -> bool:
        """Return whether the change with an idempotency key is stored; see ``Change.key``."""
        if key is None or (found := self.store.keys.get(key[0])) is None:
            return False
        if found.digest != key[1]:
            raise GraphFormatError(f"Idempotency-Key: {key[0]!r:.80} was used for another request")
        return True

    def close(self) -> None:
        """Process the queue, save the state and stop."""
        self._closing.set()
        self._queue.put(None)
        self.join()
        self._refresher.shutdown()
        try:
            self._finish_refreshing()
            self._finish_saving(wait=True)
            if self.fault is None and self.live.is_between and self._saved != self.snapshot.refreshed_to:
                self.store.write_state(self.snapshot.refreshed_to, self.live.state())
                self.store.use_state(self.snapshot.refreshed_to)
        except Exception as fault:  # the log has all changes
            logger.warning("the state was not saved: %s", fault)
        self.store.close()

    def prepare(self) -> None:
        """Prepare for the first change, once."""
        if not self.is_prepared:
            self._prepare()
        self.is_prepared = True

    def run(self) -> None:
        """Work until closed; no failure ends this thread."""
        is_open = True
        while is_open:
            try:
                if self.fault is not None:
                    self._recover()
                self.prepare()
                is_open = self._work()
            except BaseException as fault:
                self._fail(fault)
                is_open = not self._closing.wait(_PAUSES[0])
        self._refuse_waiting()

    def _work(self) -> bool:
        """Process what is queued; return False once closed."""
        self._refresh()
        batch: list[_Task] = []
        is_more = True
        while is_more:
            item = self._queue.get()  # no other thread takes from the queue
            # From here on a change can no longer be cancelled.
            if isinstance(item, _Task) and item.done.set_running_or_notify_cancel():
                if not batch:
                    self._gather()
                batch.append(item)
            is_last = item is None or (isinstance(item, _Task) and item.change is None)
            is_more = not is_last and len(batch) < _MAX_BATCH and not self._queue.empty()
        self._is_busy |= bool(batch)
        self._process(batch)
        return item is not None

    def _gather(self) -> None:
        """Wait for more changes if there are many reads, since a batch takes far less time."""
        now, reads = time.perf_counter(), self._num_reads()
        since, self._reads = now - self._began, reads - self._reads
        if self._reads > _MANY_READS * since:
            self._closing.wait(_APART - since)
        self._began, self._reads = time.perf_counter(), reads

    def _refresh(self) -> None:
        """Show vectors that the other thread updated, and let it update more if any wait."""
        if self._refreshing is not None and self._refreshing.done():
            self._finish_refreshing()
            self._on_batch(self.snapshot, 0, self._rest)
            self._maintain()
        if self._refreshing is None and (work := self.live.next_work()) is not None:
            self._refreshing = self._refresher.submit(self._after_rest, work)
            self._refreshing.add_done_callback(self._queue.put)  # wakes this thread

    def _after_rest(self, work: Callable[[], Any]) -> Any:
        # At most a third of the time, or a seventh while changes arrive, since requests go first.
        self._closing.wait(self._rest * (6 if self._is_busy else 2))
        self._is_busy = False
        started, found = time.perf_counter(), work()
        self._rest = time.perf_counter() - started
        return found

    def _finish_refreshing(self) -> None:
        if self._refreshing is not None:
            self._is_torn, found = True, self._refreshing.result()
            self._refreshing = None
            self.snapshot = self.live.take(found)
            self._is_torn = False

    def _process(self, batch: list[_Task]) -> None:
        started, applied = time.perf_counter(), 0
        results: Results = {}
        changes = [(task, task.change) for task in batch if task.change is not None]
        try:
            if changes:
                applied = self._apply(changes, results)
            for task in batch:
                if task.change is None and self.fault is None and self._compact():
                    results[task] = self.snapshot
        except Exception as fault:
            self._fail(fault)
        if applied:  # counted before any answer
            self._on_batch(self.snapshot, applied, time.perf_counter() - started)
        for task in batch:
            result = results.get(task) or ClosedError(self.fault or "the service is stopping")
            if isinstance(result, Exception):
                task.done.set_exception(result)
            else:
                task.done.set_result(result)
        if applied and self.fault is None:
            self._maintain()

    def _apply(self, group: list[tuple[_Task, Change]], results: Results) -> int:
        """Write and apply changes together; return their number."""
        staged: list[tuple[_Task, Change]] = []
        repeated: list[_Task] = []
        keys: set[str] = set()
        for is_plain, run in groupby(group, key=lambda pair: pair[1].is_plain):
            some = list(run)
            if is_plain and self.live.stage_together([change for _, change in some]):
                staged += some
                continue
            for task, change in some:
                try:
                    if self.is_applied(change.key) or (change.key and change.key[0] in keys):
                        repeated.append(task)
                        continue
                    self.live.stage(change)
                except SpineError as error:  # an invalid change fails alone
                    results[task] = error
                    continue
                staged.append((task, change))
                keys |= {change.key[0]} if change.key else set()
        if staged and not self._store(staged, results):
            return 0
        results |= dict.fromkeys(repeated, self.snapshot)
        return len(staged)

    def _store(self, staged: list[tuple[_Task, Change]], results: Results) -> bool:
        tasks = [task for task, _ in staged]
        last = self.snapshot.version + len(staged)
        joined = self.live.joining() if self.live.is_deferred else None
        entries, at = [], 0
        for version, (_, change) in enumerate(staged, self.snapshot.version + 1):
            if joined is not None and change.kind == "add" and change.names:
                rows, at = joined[at : at + len(change.names)], at + len(change.names)
                change = replace(change, vectors=encoded(rows))
            entries.append(Entry(version, change, version == last and joined is None))
        if not self._written(entries, tasks, results):
            self.live.unstage()
            return False
        results |= dict.fromkeys(tasks, OutcomeUnknownError("the service failed"))
        self._is_torn = True
        self.snapshot = self.live.update(joined)
        self._is_torn = False
        results |= dict.fromkeys(tasks, self.snapshot)
        return True

    def _written(self, entries: list[Entry], tasks: list[_Task], results: Results) -> bool:
        """Write changes to disk; return whether they are there, after an error according to the store."""
        if not self._done(lambda: self.store.append(entries, self.live.boundary)):
            results |= dict.fromkeys(tasks, OutcomeUnknownError("the service stops, and its store failed"))
            self._read_back()
            while self.store.last_version >= entries[0].version:
                if self._can_write():  # they are stored, and now on disk
                    break
            else:
                for task in tasks:
                    del results[task]
                return False
        self.live.boundary = None
        return True

    def _done(self, work: Callable[[], None]) -> bool:
        """Return whether work on the store succeeded.

        The error is freed when this returns: a cursor in its traceback would keep SQLite's lock.
        """
        try:
            work()
        except Exception as fault:
            self._fail(fault)
            return False
        return True

    def _compact(self) -> bool:
        """Compact the store; return whether that succeeded."""
        self._finish_saving(wait=True)
        self._finish_refreshing()
        graph, state = self.live.compacted()
        version = self.live.snapshot.version
        if not self._done(lambda: self.store.compact(version, graph, state)):
            self._read_back()
            if self.store.base_version != version:
                return False
        self._is_torn = True
        self.snapshot = self.live.rebase(graph, state)
        self._is_torn = False
        self._saved = version
        logger.info("compacted to %d nodes at version %d", len(graph), version)
        return True

    def _maintain(self) -> None:
        """Compact the store if it is due, and from time to time save the state in another thread."""
        overlay = self.snapshot.overlay
        added, removed, base = len(overlay.added), len(overlay) - overlay.num_nodes, len(overlay.base)
        share = max(added / max(_MAX_ADDED, base // 2), removed / max(_MAX_REMOVED, base // 4))
        if share > (2 if self.live.is_behind else 1) and not self._compact():
            return
        self._finish_saving(wait=False)
        every, version = max(self._save_every, len(overlay) // 50), self.snapshot.refreshed_to
        if self._saving is not None or not self.live.is_between or version - self._saved < every:
            return
        self._saved = version
        state, vectors = self.live.state(with_vectors=False), self.snapshot.vectors

        def save(version: int) -> None:
            try:
                self.store.write_state(version, {**state, "vectors": vectors.matrix()[: len(state["moved"])]})
            except (OSError, SpineError) as fault:  # the log still has all changes
                logger.warning("the state of version %d was not saved: %s", version, fault)

        self._saving = Thread(target=save, args=(version,), name="saving", daemon=True)
        self._saving.start()

    def _finish_saving(self, *, wait: bool) -> None:
        """Use the state that the other thread wrote, if it is done."""
        if self._saving is not None and (wait or not self._saving.is_alive()):
            self._saving.join()
            self._saving = None
            self.store.use_state(self._saved)

    def _fail(self, fault: BaseException) -> None:
        is_usual = isinstance(fault, OSError | sqlite3.Error | SpineError)
        why = " ".join(str(fault).split())[:200] or type(fault).__name__
        message = f"the store failed ({why}); changes are accepted again as soon as it works"
        if message != self.fault:
            logger.error("%s", message, exc_info=None if is_usual else fault)
        self.fault = message

    def _recover(self) -> None:
        """Wait until the store works again, and reject changes meanwhile."""
        self._read_back()
        while not self._can_write():
            pass
        self.live.unstage()
        if self._is_torn or self.store.last_version != self.live.snapshot.version:
            self._is_torn = True
            if self._rebuild is None:
                raise ClosedError("the state in memory differs from the store; restart the service")
            self.live, self._refreshing = self._rebuild(), None
            self._is_torn = False
        self.snapshot, self._saved = self.live.snapshot, self.store.state_version or 0
        self.fault = None
        logger.warning("the store works again, at version %d", self.snapshot.version)

    def _read_back(self) -> None:
        """Reopen the store as soon as that works."""
        while not self._attempt(self.store.read_back):
            pass

    def _can_write(self) -> bool:
        """Return whether the store can be written to; reopen it if not."""
        if self._attempt(self.store.try_writing):
            return True
        self._read_back()
        return False

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Return whether work on the store succeeded; if not, reject queued changes and pause."""
        if self._done(work):
            self._pause = _PAUSES[0]
            return True
        self._refuse_waiting()
        if self._closing.wait(self._pause):
            raise ClosedError("the service is stopping, and its store does not work")
        self._pause = min(2 * self._pause, _PAUSES[1])
        return False

    def _refuse_waiting(self) -> None:
        """Reject all queued changes, none of which was written."""
        while not self._queue.empty():
            task = self._queue.get()
            if isinstance(task, _Task) and task.done.set_running_or_notify_cancel():
                task.done.set_exception(ClosedError(self.fault or "the service is stopping"))
