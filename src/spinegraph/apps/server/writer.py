"""The only writer: applies changes in order, writes them to disk, and only then shows them to readers."""

import logging
import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby
from threading import Thread

from spinegraph.apps.server.live import Change, Live, Snapshot
from spinegraph.apps.server.store import Entry, Store
from spinegraph.errors import SpineError

logger = logging.getLogger(__name__)
_MAX_BATCH = 64  # changes that share one transaction
_SAVE_EVERY = 2_000  # changes; a restart replays about as many at most
_MAX_ADDED, _MAX_REMOVED = 10_000, 500  # nodes before the store is compacted


class ClosedError(SpineError):
    """The service takes no changes: it is stopping, full, or its store failed."""


@dataclass(frozen=True, eq=False)
class _Task:
    done: "Future[Snapshot]"
    change: Change | None  # None: compact


class Writer(Thread):
    """Applies changes from a queue of at most ``waiting``, in its own thread.

    After every batch it calls ``on_batch`` with the new snapshots, the number of changes and the time taken.
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
        self.snapshot = live.snapshot  # what readers see; replaced, never modified
        self.fault: str | None = None
        self._queue: queue.Queue[_Task | None] = queue.Queue(waiting)
        self._on_batch = on_batch or (lambda snapshots, changes, seconds: None)
        self._saving: Thread | None = None
        self._saved, self._save_every = store.state_version or 0, _SAVE_EVERY

    @property
    def waiting(self) -> int:
        """Number of queued changes."""
        return self._queue.qsize()

    def submit(self, change: Change | None) -> "Future[Snapshot]":
        """Queue a change, or None to compact; the future is done once it is on disk and readers see it."""
        if self.fault is not None:
            raise ClosedError(self.fault)
        task = _Task(Future(), change)
        try:
            self._queue.put_nowait(task)
        except queue.Full:
            raise ClosedError(f"{self._queue.maxsize} changes wait already; try again in a second") from None
        return task.done

    def close(self) -> None:
        """Process the queue, save the state and stop."""
        self._queue.put(None)
        self.join()
        self._finish_saving(wait=True)
        if self.fault is None and self._saved != self.snapshot.version:
            self.store.write_state(self.snapshot.version, self.live.state())
            self.store.use_state(self.snapshot.version)
        self.store.close()

    def run(self) -> None:
        """Work until closed; after a failure of the store readers are still served."""
        is_open = True
        while is_open:
            batch = [self._queue.get()]
            while len(batch) < _MAX_BATCH and batch[-1] and batch[-1].change and not self._queue.empty():
                batch.append(self._queue.get())  # this thread alone takes from the queue
            is_open = batch[-1] is not None
            # From here on a change can no longer be cancelled.
            self._process([task for task in batch if task and task.done.set_running_or_notify_cancel()])

    def _process(self, batch: list[_Task]) -> None:
        started = time.perf_counter()
        entries: list[Entry] = []
        results: dict[_Task, Snapshot | SpineError] = {}
        try:
            if self.fault is None:
                self._apply(batch, entries, results)
                if entries:
                    self.store.append(entries)
                    self.snapshot = self.live.snapshot
                if any(task.change is None for task in batch) or self._should_compact():
                    self._compact()
        except BaseException as fault:
            # Memory may be ahead of the disk now, so nothing more may be applied.
            logger.exception("the store failed")
            self.fault = f"the store failed ({type(fault).__name__}: {fault}); restart the service"
        if entries and self.fault is None:  # counted before anyone is answered
            snapshots = [one for one in dict.fromkeys(results.values()) if isinstance(one, Snapshot)]
            self._on_batch(snapshots, len(entries), time.perf_counter() - started)
        for task in batch:
            result = results.get(task, self.snapshot)
            if isinstance(result, SpineError):
                task.done.set_exception(result)
            elif self.fault is not None:
                task.done.set_exception(ClosedError(self.fault))
            else:
                task.done.set_result(result)
        if entries and self.fault is None:
            self._save_if_due()

    def _apply(
        self, batch: list[_Task], entries: list[Entry], results: dict[_Task, Snapshot | SpineError]
    ) -> None:
        """Apply the changes of a batch; vectors are updated once for consecutive changes of one kind."""
        changes = [(task, task.change) for task in batch if task.change is not None]
        for _, group in groupby(changes, key=lambda pair: pair[1].kind):
            staged = []
            for task, change in group:
                try:
                    self.live.stage(change)
                    staged.append((task, change))
                except SpineError as error:  # an invalid change fails alone
                    results[task] = error
            if staged:
                first, snapshot = self.live.snapshot.version + 1, self.live.update()
                for version, (task, change) in enumerate(staged, first):
                    entries.append(Entry(version, change, version == snapshot.version))
                    results[task] = snapshot

    def _should_compact(self) -> bool:
        overlay = self.live.snapshot.overlay
        added, removed, base = len(overlay.added), len(overlay) - overlay.num_nodes, len(overlay.base)
        return added > max(_MAX_ADDED, base // 2) or removed > max(_MAX_REMOVED, base // 4)

    def _compact(self) -> None:
        self._finish_saving(wait=True)
        graph = self.live.compact()
        self.store.compact(self.live.snapshot.version, graph, self.live.state())
        self._saved = self.live.snapshot.version
        self.snapshot = self.live.snapshot
        logger.info("compacted to %d nodes at version %d", len(graph), self._saved)

    def _save_if_due(self) -> None:
        """Save the state from time to time, in another thread."""
        self._finish_saving(wait=False)
        every = max(self._save_every, len(self.snapshot.overlay) // 50)
        if self._saving is not None or self.snapshot.version - self._saved < every:
            return
        self._saved = self.snapshot.version
        state, vectors = self.live.state(with_vectors=False), self.snapshot.vectors

        def save(version: int) -> None:
            try:
                self.store.write_state(version, {**state, "vectors": vectors.matrix()})
            except (OSError, SpineError) as fault:  # the log still holds all changes
                logger.warning("the state of version %d was not saved: %s", version, fault)

        self._saving = Thread(target=save, args=(self._saved,), name="saving", daemon=True)
        self._saving.start()

    def _finish_saving(self, *, wait: bool) -> None:
        """Use the state that the other thread wrote, once it is done."""
        if self._saving is not None and (wait or not self._saving.is_alive()):
            self._saving.join()
            self._saving = None
            self.store.use_state(self._saved)
