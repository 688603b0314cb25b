"""The one writer: applies changes in order, writes them to disk, and only then shows them to readers."""

import logging
import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from threading import Thread
from typing import NamedTuple

from spinegraph.apps.server.live import Change, Live, Snapshot
from spinegraph.apps.server.store import Entry, Store
from spinegraph.errors import SpineError

logger = logging.getLogger(__name__)
_MOST_AT_ONCE = 64  # changes that share one trip to the disk
_SAVE_EVERY = 2_000  # changes; a restart redoes at most about as many
# Added and removed nodes that a base graph is not made anew for.
_MANY_ADDED, _MANY_REMOVED = 10_000, 500


class ClosedError(SpineError):
    """The service takes no changes: it is stopping, full, or its store failed."""


@dataclass(frozen=True)
class _Task:
    done: "Future[Snapshot]"
    change: Change | None  # None: compact


class _Work(NamedTuple):
    """What came of a batch."""

    entries: list[Entry]
    answers: list[tuple[_Task, Snapshot]]
    refused: list[tuple[_Task, SpineError]]


class Writer(Thread):
    """Applies changes from a queue, in a thread of its own.

    Parameters
    ----------
    live : Live
    store : Store
    waiting : int
        Changes that may wait; more are refused.
    on_batch : callable (snapshots, changes, seconds), optional
        Told of every batch that was brought to disk: what it led to, how many changes it held, and its time.
    """

    def __init__(
        self,
        live: Live,
        store: Store,
        *,
        waiting: int = 1024,
        on_batch: Callable[[list[Snapshot], int, float], None] | None = None,
    ) -> None:
        super().__init__(name="writer", daemon=True)
        self.live, self.store = live, store
        self.snapshot = live.tip  # what readers see; replaced whole, never changed
        self.fault: str | None = None
        self._queue: queue.Queue[_Task | None] = queue.Queue(waiting)
        self._on_batch = on_batch or (lambda snapshots, changes, seconds: None)
        self._saving: Thread | None = None
        self._saved, self._save_every = store.state_version or 0, _SAVE_EVERY

    @property
    def waiting(self) -> int:
        """How many changes wait."""
        return self._queue.qsize()

    def submit(self, change: Change | None) -> "Future[Snapshot]":
        """Hand in a change, or None to compact; the future is done when it is on disk and readers see it."""
        task = _Task(Future(), change)
        if self.fault is not None:
            raise ClosedError(self.fault)
        try:
            self._queue.put_nowait(task)
        except queue.Full:
            raise ClosedError(f"{self._queue.maxsize} changes wait already; try again in a second") from None
        return task.done

    def close(self) -> None:
        """Finish what waits, save the state and stop."""
        self._queue.put(None)
        self.join()
        self._settle(wait=True)
        if self.fault is None and self._saved != self.snapshot.version:
            self.store.write_state(self.snapshot.version, self.live.state())
            self.store.use_state(self.snapshot.version)
        self.store.close()

    def run(self) -> None:
        """Work until closed; a fault of the store ends the taking of changes, not the reading."""
        while True:
            task = self._queue.get()
            if task is None:
                return
            batch = [task]
            while len(batch) < _MOST_AT_ONCE and batch[-1] is not None and batch[-1].change is not None:
                try:
                    batch.append(self._queue.get_nowait())  # type: ignore[arg-type]
                except queue.Empty:
                    break
            stopping = batch[-1] is None
            # From here on nobody can take a change back.
            self._work([one for one in batch if one is not None and one.done.set_running_or_notify_cancel()])
            if stopping:
                return

    def _work(self, batch: list[_Task]) -> None:
        started = time.perf_counter()
        work = _Work([], [], [])
        try:
            if self.fault is None:
                self._apply(batch, work)
            if work.entries:
                self.store.append(work.entries)
                self.snapshot = work.answers[-1][1]
            if any(task.change is None for task in batch) or self._is_worth_compacting():
                self._compact()
        except BaseException as fault:
            # What was computed may be ahead of the disk, so nothing may be built on it.
            logger.exception("the store failed")
            self.fault = f"the store failed ({type(fault).__name__}: {fault}); restart the service"
        if work.entries and self.fault is None:  # counted before anybody is answered
            snapshots = list(dict.fromkeys(snapshot for _, snapshot in work.answers))
            self._on_batch(snapshots, len(work.entries), time.perf_counter() - started)
        for task, reason in work.refused:  # not before readers see what it may have come too late for
            task.done.set_exception(reason)
        for task, snapshot in work.answers:
            self._finish(task, snapshot)
        for task in batch:
            if not task.done.done():
                self._finish(task, self.snapshot)
        if work.entries and self.fault is None:
            self._save_now_and_then()

    def _apply(self, batch: list[_Task], work: "_Work") -> None:
        """Apply the changes of a batch; those of one kind that follow each other are settled together."""
        changes = [(task, task.change) for task in batch if task.change is not None]
        for _, alike in groupby(changes, key=lambda pair: pair[1].kind):
            taken = []
            for task, change in alike:
                try:
                    self.live.take(change)
                    taken.append((task, change))
                except SpineError as error:  # a change that breaks a rule fails alone
                    work.refused.append((task, error))
            if taken:
                first, snapshot = self.live.tip.version + 1, self.live.settle()
                for version, (task, change) in enumerate(taken, first):
                    work.entries.append(Entry(version, change, version == snapshot.version))
                    work.answers.append((task, snapshot))

    def _finish(self, task: _Task, snapshot: Snapshot) -> None:
        if self.fault is None:
            task.done.set_result(snapshot)
        else:
            task.done.set_exception(ClosedError(self.fault))

    def _is_worth_compacting(self) -> bool:
        overlay = self.live.tip.overlay
        added, removed, base = len(overlay.added), len(overlay) - overlay.num_nodes, len(overlay.base)
        return added > max(_MANY_ADDED, base // 2) or removed > max(_MANY_REMOVED, base // 4)

    def _compact(self) -> None:
        self._settle(wait=True)
        graph = self.live.rebase()
        self.store.compact(self.live.tip.version, graph, self.live.state())
        self._saved = self.live.tip.version
        self.snapshot = self.live.tip
        logger.info("compacted to %d nodes at version %d", len(graph), self._saved)

    def _save_now_and_then(self) -> None:
        """Save the state from time to time, beside the work."""
        self._settle(wait=False)
        every = max(self._save_every, len(self.snapshot.overlay) // 50)
        if self._saving is not None or self.snapshot.version - self._saved < every:
            return
        self._saved = self.snapshot.version
        state, vectors = self.live.state(with_vectors=False), self.snapshot.vectors

        def save(version: int) -> None:
            try:
                self.store.write_state(version, {**state, "vectors": vectors.matrix()})
            except (OSError, SpineError) as fault:  # the log holds all the same; a restart takes longer
                logger.warning("the state of version %d was not saved: %s", version, fault)

        self._saving = Thread(target=save, args=(self._saved,), name="saving", daemon=True)
        self._saving.start()

    def _settle(self, *, wait: bool) -> None:
        """Use the state that was written beside the work, once it is."""
        if self._saving is None or (self._saving.is_alive() and not wait):
            return
        self._saving.join()
        self._saving = None
        self.store.use_state(self._saved)
