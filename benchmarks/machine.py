"""What a benchmark ran on, and how much memory it took."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def thread_environment(threads):
    """Return this process's environment with every library held to so many threads; for a new process."""
    return os.environ | dict.fromkeys(_THREAD_SETTINGS, str(threads))


def resident(field="VmHWM"):
    """Return the resident size of this process now (``VmRSS``) or at its highest (``VmHWM``), in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"no {field} in /proc/self/status; this benchmark needs Linux")


def processor_seconds(pid):
    """Return the processor time of a process, all its threads, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def describe(*packages):
    """Return cores, load, platform and the versions of packages, to write beside results."""
    import spinegraph  # not above: other environments import this module without the package

    return {
        "cores": os.cpu_count(),
        "load_average_at_start": round(os.getloadavg()[0], 2),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "spinegraph": spinegraph.__version__,  # of the code in use, installed or not
        **{package: version(package) for package in ("numpy", *packages)},
    }
