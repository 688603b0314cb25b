"""Tasks in bounded number: finished results come out while the rest is still running."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from spinegraph.engines.ray.cluster import num_workers, require_ray
from spinegraph.errors import ClusterError, SpineError

RETRIES = 5  # of a task whose machine or process is lost
_AHEAD = 2  # tasks per core that are handed out, so that none waits for the next one


def finished(
    function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> Generator[tuple[int, Any], None, None]:
    """Run calls of a function as tasks of one core each; yield (place, result) as they finish.

    So many are under way that every core has one and one waits for it: results that nobody has taken yet do
    not pile up. A task whose machine is lost is done again elsewhere. On an error the others are cancelled.

    Parameters
    ----------
    function : callable
        Of a module; its arguments and result travel, so large ones are passed by reference.
    calls : list of tuples
    """
    ray = require_ray()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
    running: dict[Any, int] = {}
    given = 0
    try:
        while given < len(calls) or running:
            most = _AHEAD * num_workers()  # machines come and go
            while given < len(calls) and len(running) < most:
                running[task.remote(*calls[given])] = given
                given += 1
            done, _ = ray.wait(list(running), num_returns=1)
            place = running.pop(done[0])
            yield place, _result(ray, done[0])
    finally:
        for one in running:
            ray.cancel(one)


def _result(ray: Any, reference: Any) -> Any:
    """Return a task's result, or raise what went wrong in it as if it had been called here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        cause = fault.cause
        if isinstance(cause, SpineError):
            raise cause from None
        if isinstance(cause, ImportError):
            raise ClusterError(
                f"machine {getattr(fault, 'ip', '?')} lacks a package ({cause}); there: "
                "pip install 'spinegraph[ray]'"
            ) from fault
        raise
    except ray.exceptions.RayError as fault:
        reason = str(fault).strip().split("\n")[0][:300]
        raise ClusterError(
            f"a task was lost {RETRIES + 1} times ({reason}); what is finished stays, run the same again"
        ) from fault
