"""Profiles by push on a CUDA device, with the kernel push.cu."""

import logging
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.kernels.push import LAST_LEVEL, push_goal

logger = logging.getLogger(__name__)

# Measured on an H200: 768 threads, 8 of them per row, push 2.13 million roots a second; 512 threads 2.02;
# three tables per multiprocessor 1.73, since some roots then need wide tables.
_THREADS = 768
_BLOCKS_PER_PROCESSOR = 2
_LANES = 8
_MIN_QUEUE = 1536
_STATIC = 1536  # bytes of shared memory that the kernel uses besides its table
_FIRST_WIDE = 1 << 17
_SHARE_OF_MEMORY = 0.25  # for wide tables
Kernels = tuple[Any, Any]  # with tables in shared memory, and with wide ones in global memory


class Layout(NamedTuple):
    """Sizes of a hash table: its slots, how many may be used, and the length of its queue."""

    size: int
    room: int
    queue: int

    def bytes(self, wide: bool) -> int:
        """Return the memory of one table, as ``table_at`` in push.cu arranges it."""
        size, queue, room = (12, 8, 4) if wide else (8, 6, 2)
        return -(-(size * self.size + queue * self.queue + room * self.room) // 16) * 16


def push_kernels(device: torch.device) -> Kernels | None:
    """Return the compiled kernels of a CUDA device, or None if there are none."""
    if device.type != "cuda":
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    found = _compiled(index), _compiled(index, "WIDE")
    return None if None in found else found


@cache
def _compiled(index: int, *definitions: str) -> Any:
    """Compile push.cu for the CUDA device of that index; return None if Torch cannot."""
    macros = (f"THREADS {_THREADS}", f"BLOCKS {_BLOCKS_PER_PROCESSOR}", f"LANES {_LANES}", *definitions)
    source = files("spinegraph.engines.gpu").joinpath("push.cu").read_text()
    try:
        with torch.cuda.device(index):
            lines = [*(f"#define {macro}" for macro in macros), source]
            return torch.cuda._compile_kernel("\n".join(lines), "push_roots")
    except (AttributeError, OSError, RuntimeError) as fault:
        logger.warning("the push kernel cannot be compiled, so the CPU computes profiles: %s", fault)
        return None


def push(
    kernels: Kernels,
    graph: DeviceGraph,
    roots: Tensor,
    *,
    k: int,
    continuation: float,
    tolerance: float,
    threshold: float,
) -> Tensor:
    """Return the profiles of some roots, (r, k): ``weights`` of ``rooted_pagerank`` with a threshold."""
    weights = torch.empty((len(roots), k), device=graph.device)
    full = torch.empty(len(roots), dtype=torch.int32, device=graph.device)
    has_weights = graph.weights is not None
    weighing = (graph.weights, graph.strengths) if has_weights else (graph.indices, graph.indices)
    links = [graph.indptr, graph.indices, graph.neighbor_degrees, *weighing, int(has_weights), roots.int()]
    settings = [continuation, push_goal(continuation, tolerance), threshold * LAST_LEVEL, k]
    rows = torch.arange(len(roots), dtype=torch.int32, device=graph.device)
    layout, wide = shared_layout(graph.device, k), False
    while len(rows):  # roots whose nodes do not fit into a table are pushed again with a larger one
        _launch(kernels[wide], layout, wide, len(rows), [*links, rows, len(rows), *settings], [weights, full])
        rows = rows[full[rows.long()] > 0]
        layout = wide_layout(8 * layout.size if wide else _FIRST_WIDE, len(graph), k)
        wide = True
    return weights


def shared_layout(device: torch.device, k: int) -> Layout:
    """Return the largest table of which two fit in a multiprocessor's shared memory."""
    found = torch.cuda.get_device_properties(device)
    half = found.shared_memory_per_multiprocessor // _BLOCKS_PER_PROCESSOR - 1024
    return layout_within(min(half, getattr(found, "shared_memory_per_block_optin", half)) - _STATIC, k)


def layout_within(limit: int, k: int) -> Layout:
    """Return the largest table of at most ``limit`` bytes, with 16-bit slots."""
    queue = max(_MIN_QUEUE, 8 * k)
    size = (limit - 6 * queue + 2 * _THREADS - 16) // 10 // 16 * 16
    # Every thread may add one node more than fits before it sees that the table is full.
    return Layout(size, size - _THREADS - 1, queue)


def wide_layout(size: int, num_nodes: int, k: int) -> Layout:
    """Return a table of ``size`` slots, or as many as any root of the graph can need."""
    size = min(max(size, 64 * k), max(2 * num_nodes, 64 * k) + 2 * _THREADS)
    size = -(-size // 16) * 16
    return Layout(size, size - _THREADS - 1, 3 * size)


def _launch(run: Any, layout: Layout, wide: bool, count: int, given: list[Any], out: list[Tensor]) -> None:
    device = out[0].device
    blocks = torch.cuda.get_device_properties(device).multi_processor_count * _BLOCKS_PER_PROCESSOR
    blocks, size = min(blocks, count), layout.bytes(wide)
    if wide:
        blocks = max(1, min(blocks, int(torch.cuda.mem_get_info(device)[0] * _SHARE_OF_MEMORY) // size))
    tables = torch.empty(blocks * size if wide else 1, dtype=torch.uint8, device=device)
    taken = torch.zeros(1, dtype=torch.int32, device=device)
    shared = 0 if wide else size
    with torch.cuda.device(device):
        if shared:
            run.set_shared_memory_config(shared)
        arguments = [*given, tables, *layout, taken, *out]
        run(grid=(blocks, 1, 1), block=(_THREADS, 1, 1), args=arguments, shared_mem=shared)
