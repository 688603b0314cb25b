"""Runs push.cu: tables in shared memory, and in global memory for the roots that reach too much for that."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from spinegraph.gpu.compiled import kernel
from spinegraph.gpu.graph import DeviceGraph
from spinegraph.gpu.profile import DeviceProfile
from spinegraph.gpu.topk import ROOM, TIE

# Measured on an H200: 768 threads with rows by 8 do 2.13 million roots a second, 512 do 2.02, three tables a
# multiprocessor 1.73, since some roots then need wide ones.
_THREADS = 768
_BLOCKS_PER_PROCESSOR = 2
_LANES = 8
_ROOTS_TOGETHER = 1 << 19  # bounds the memory for ties
_LEAST_QUEUE = 1536
_STATIC = 1536  # bytes of shared memory that the kernel takes besides its table
_FIRST_WIDE = 1 << 17
_SHARE_OF_MEMORY = 0.25  # that wide tables may take


class Kernels(NamedTuple):
    """The kernel with its tables in shared memory, and the one with tables in global memory."""

    shared: Any
    wide: Any


class Layout(NamedTuple):
    """A table: its slots, how many may be used, and how many pushes its queue holds."""

    size: int
    room: int
    queue: int

    def bytes(self, wide: bool) -> int:
        """Memory of one table, as the kernel lays it out."""
        each = (12, 8, 4) if wide else (8, 6, 2)
        found = sum(
            size * count for size, count in zip(each, (self.size, self.queue, self.room), strict=True)
        )
        return -(-found // 16) * 16


def push_kernels(device: torch.device) -> Kernels | None:
    """Return the compiled kernels of a CUDA device, or None where there are none."""
    if device.type != "cuda":
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    launch = (f"THREADS {_THREADS}", f"BLOCKS {_BLOCKS_PER_PROCESSOR}", f"LANES {_LANES}")
    found = Kernels(
        kernel("push.cu", "push_roots", index, *launch),
        kernel("push.cu", "push_roots", index, *launch, "WIDE"),
    )
    return None if None in found else found


def push_by_kernel(
    kernels: Kernels,
    graph: DeviceGraph,
    roots: Tensor,
    k: int,
    continuation: float,
    bounds: tuple[float, float, int],
) -> DeviceProfile:
    """Return the profile of some roots; ``bounds`` are goal, least level and budget."""
    parts = [
        _push(kernels, graph, some.int(), k, continuation, bounds) for some in roots.split(_ROOTS_TOGETHER)
    ]
    return DeviceProfile.joined(parts or [_push(kernels, graph, roots.int(), k, continuation, bounds)])


def _push(
    kernels: Kernels,
    graph: DeviceGraph,
    roots: Tensor,
    k: int,
    continuation: float,
    bounds: tuple[float, float, int],
) -> DeviceProfile:
    out = _new_rows(len(roots), k, graph.device)
    has_weights = graph.weights is not None
    weighing = (graph.weights, graph.strengths) if has_weights else (graph.indices, graph.indices)
    links = [graph.indptr, graph.indices, graph.neighbor_degrees, *weighing, int(has_weights)]
    settings = [continuation, bounds[0], bounds[1], float(bounds[2]), k, TIE]
    rows = torch.arange(len(roots), dtype=torch.int32, device=graph.device)
    layout, wide = shared_layout(graph.device, k), False
    while len(rows):
        some = [roots[rows.long()], rows, len(rows)]
        _launch(kernels.wide if wide else kernels.shared, links, some, settings, layout, wide, out)
        rows = rows[out["full"][rows.long()] > 0]
        layout = wide_layout(8 * layout.size if wide else _FIRST_WIDE, len(graph), k)
        wide = True
    tied = out["tied"].long()
    chosen = torch.arange(ROOM * k, device=graph.device) < tied[:, None]
    return DeviceProfile(
        nodes=out["nodes"],
        weights=out["weights"],
        mass=out["mass"],
        num_nodes=len(graph),
        kept=out["kept"],
        tied_indptr=torch.cat([tied.new_zeros(1), tied.cumsum(0)]),
        tied_nodes=out["tied_nodes"][chosen],
        unassigned=out["unassigned"],
    )


def shared_layout(device: torch.device, k: int) -> Layout:
    """Return the largest table of which two fit in a multiprocessor's shared memory."""
    found = torch.cuda.get_device_properties(device)
    half = found.shared_memory_per_multiprocessor // _BLOCKS_PER_PROCESSOR - 1024
    limit = min(half, getattr(found, "shared_memory_per_block_optin", half)) - _STATIC
    return layout_within(limit, k)


def layout_within(limit: int, k: int) -> Layout:
    """Return the largest table of so many bytes, with 16-bit slots.

    >>> layout_within(100_000, k=30).bytes(wide=False) <= 100_000
    True
    """
    queue = max(_LEAST_QUEUE, 8 * k)
    size = (limit - 6 * queue + 2 * _THREADS - 16) // 10 // 16 * 16
    # Every thread may add one node more than there is room for, before it sees that there is none.
    return Layout(size, size - _THREADS - 1, queue)


def wide_layout(size: int, num_nodes: int, k: int) -> Layout:
    """Return a table of so many slots, or as many as any root of the graph can need."""
    size = min(max(size, 64 * k), max(2 * num_nodes, 64 * k) + 2 * _THREADS)
    size = -(-size // 16) * 16
    return Layout(size, size - _THREADS - 1, 3 * size)


def _launch(
    run: Any,
    links: list[Any],
    some: list[Any],
    settings: list[Any],
    layout: Layout,
    wide: bool,
    out: dict[str, Tensor],
) -> None:
    device = links[0].device
    blocks = torch.cuda.get_device_properties(device).multi_processor_count * _BLOCKS_PER_PROCESSOR
    if wide:
        most = int(torch.cuda.mem_get_info(device)[0] * _SHARE_OF_MEMORY) // layout.bytes(wide=True)
        blocks = max(1, min(blocks, most))
    blocks = min(blocks, some[2])
    tables = torch.empty(blocks * layout.bytes(wide=True) if wide else 1, dtype=torch.uint8, device=device)
    shared = 0 if wide else layout.bytes(wide=False)
    taken = torch.zeros(1, dtype=torch.int32, device=device)
    arguments = [*links, *some, *settings, tables, *layout, taken, *out.values()]
    with torch.cuda.device(device):
        if shared:
            run.set_shared_memory_config(shared)
        run(grid=(blocks, 1, 1), block=(_THREADS, 1, 1), args=arguments, shared_mem=shared)


def _new_rows(count: int, k: int, device: torch.device) -> dict[str, Tensor]:
    kinds = {
        "nodes": ((count, k), torch.int32),
        "weights": ((count, k), torch.float32),
        "mass": ((count,), torch.float64),
        "kept": ((count,), torch.int32),
        "tied": ((count,), torch.int32),
        "tied_nodes": ((count, ROOM * k), torch.int32),
        "unassigned": ((count,), torch.float64),
        "full": ((count,), torch.int32),
    }
    return {name: torch.empty(shape, dtype=kind, device=device) for name, (shape, kind) in kinds.items()}
