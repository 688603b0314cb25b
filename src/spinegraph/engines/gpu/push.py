"""Rooted PageRank by push on a CUDA device, by the kernel push.cu."""

import logging
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.kernels.adjacency import Adjacency
from spinegraph.kernels.push import LAST_LEVEL, ROOM, TIE, push_budget, push_goal
from spinegraph.structure.pagerank import RootedPageRank

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class DeviceProfile:
    """The k largest rooted-PageRank values of each root, with the fields of ``RootedPageRank`` as tensors."""

    nodes: Tensor
    weights: Tensor
    mass: Tensor
    num_nodes: int
    kept: Tensor
    tied_indptr: Tensor
    tied_nodes: Tensor
    unassigned: Tensor

    def to_host(self) -> RootedPageRank:
        """Copy the profile to the host."""
        arrays: dict[str, Any] = {
            name: value.cpu().numpy() if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return RootedPageRank(**arrays)


class Limits(NamedTuple):
    """When a root's push ends, as on the CPU."""

    goal: float  # residual mass
    level: float  # residual mass per neighbour; 0: none
    budget: int  # edges after which every node is pushed in every round; -1: never

    @classmethod
    def of(cls, adjacency: Adjacency, continuation: float, tolerance: float, threshold: float) -> "Limits":
        """Return the limits that the CPU keeps."""
        goal = push_goal(continuation, tolerance)
        budget = -1 if threshold > 0 else push_budget(adjacency, continuation, goal)
        return cls(goal, threshold * LAST_LEVEL, budget)


# Measured on an H200: 768 threads with rows by 8 do 2.13 million roots a second, 512 do 2.02, three tables a
# multiprocessor 1.73, since some roots then need wide ones.
_THREADS = 768
_BLOCKS_PER_PROCESSOR = 2
_LANES = 8
_MIN_QUEUE = 1536
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
        size, queue, room = (12, 8, 4) if wide else (8, 6, 2)
        return -(-(size * self.size + queue * self.queue + room * self.room) // 16) * 16


def push_kernels(device: torch.device) -> Kernels | None:
    """Return the compiled kernels of a CUDA device, or None where there are none."""
    if device.type != "cuda":
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    found = Kernels(_compiled(index), _compiled(index, "WIDE"))
    return None if None in found else found


@cache
def _compiled(index: int, *definitions: str) -> Any:
    """Compile push.cu for the CUDA device of that index; None where Torch cannot."""
    macros = (f"THREADS {_THREADS}", f"BLOCKS {_BLOCKS_PER_PROCESSOR}", f"LANES {_LANES}", *definitions)
    source = files("spinegraph.engines.gpu").joinpath("push.cu").read_text()
    try:
        with torch.cuda.device(index):
            return torch.cuda._compile_kernel(
                "\n".join([*(f"#define {macro}" for macro in macros), source]), "push_roots"
            )
    except (AttributeError, OSError, RuntimeError) as fault:
        logger.warning("the push kernel cannot be compiled, the CPU computes profiles: %s", fault)
        return None


def push(
    kernels: Kernels, graph: DeviceGraph, roots: Tensor, *, k: int, continuation: float, limits: Limits
) -> DeviceProfile:
    """Return the profile of some roots, int (r,); see ``rooted_pagerank``."""
    out = _new_rows(len(roots), k, graph.device)
    has_weights = graph.weights is not None
    weighing = (graph.weights, graph.strengths) if has_weights else (graph.indices, graph.indices)
    links = [graph.indptr, graph.indices, graph.neighbor_degrees, *weighing, int(has_weights)]
    settings = [continuation, limits.goal, limits.level, float(limits.budget), k, TIE]
    roots = roots.int()
    rows = torch.arange(len(roots), dtype=torch.int32, device=graph.device)
    layout, wide = shared_layout(graph.device, k), False
    while len(rows):  # roots that reach more than a table holds are pushed again with a larger one
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
    """Return the largest table of so many bytes, with 16-bit slots."""
    queue = max(_MIN_QUEUE, 8 * k)
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
        tables_in_memory = int(torch.cuda.mem_get_info(device)[0] * _SHARE_OF_MEMORY) // layout.bytes(True)
        blocks = max(1, min(blocks, tables_in_memory))
    blocks = min(blocks, some[2])
    tables = torch.empty(blocks * layout.bytes(True) if wide else 1, dtype=torch.uint8, device=device)
    shared = 0 if wide else layout.bytes(False)
    taken = torch.zeros(1, dtype=torch.int32, device=device)
    arguments = [*links, *some, *settings, tables, *layout, taken, *out.values()]
    with torch.cuda.device(device):
        if shared:
            run.set_shared_memory_config(shared)
        run(grid=(blocks, 1, 1), block=(_THREADS, 1, 1), args=arguments, shared_mem=shared)


def _new_rows(count: int, k: int, device: torch.device) -> dict[str, Tensor]:
    """Return what the kernel writes, in the order of its arguments."""
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
