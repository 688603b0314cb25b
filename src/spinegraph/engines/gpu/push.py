"""Rooted PageRank by push on a device: by a CUDA kernel where there is one, else by sorting."""

import logging
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spinegraph.engines.gpu.graph import DeviceGraph, Rows


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
    unassigned: Tensor | None = None

    def __len__(self) -> int:
        """Return the number of roots."""
        return len(self.nodes)

    @property
    def k(self) -> int:
        """Length of each profile."""
        return int(self.nodes.shape[1])

    def operator(self) -> Rows:
        """Return T, (r, n); ties at the k-th place are shared as in ``RootedPageRank.operator``."""
        device, k = self.nodes.device, self.k
        tied = self.tied_indptr.diff()
        indptr = torch.zeros(len(self) + 1, dtype=torch.int64, device=device)
        torch.cumsum(self.kept + tied, 0, out=indptr[1:])
        inside = torch.arange(k, device=device) < self.kept[:, None]  # (r, k)
        wide = self.weights.double()
        head, total = (wide * inside).sum(1), wide.sum(1)
        scale = torch.where((tied > 0) | (head == 0), 1.0, total / head.clamp_min(1e-300))
        places = (indptr[:-1, None] + torch.arange(k, device=device))[inside]
        indices = torch.empty(int(indptr[-1]), dtype=torch.int32, device=device)
        values = torch.empty(len(indices), dtype=torch.float32, device=device)
        indices[places] = self.nodes[inside]
        values[places] = (wide * scale[:, None])[inside].float()
        rows = torch.repeat_interleave(torch.arange(len(self), device=device), tied)
        place = torch.arange(len(rows), device=device) - self.tied_indptr[:-1][rows]
        places = (indptr[:-1] + self.kept)[rows] + place
        indices[places] = self.tied_nodes
        values[places] = ((total - head) / tied.clamp_min(1))[rows].float()
        return Rows(indptr, indices, values, self.num_nodes)

    def part(self, start: int, stop: int) -> "DeviceProfile":
        """Return the profiles of the roots from ``start`` to ``stop``."""
        first, last = int(self.tied_indptr[start]), int(self.tied_indptr[stop])
        return DeviceProfile(
            self.nodes[start:stop],
            self.weights[start:stop],
            self.mass[start:stop],
            self.num_nodes,
            self.kept[start:stop],
            self.tied_indptr[start : stop + 1] - first,
            self.tied_nodes[first:last],
            None if self.unassigned is None else self.unassigned[start:stop],
        )

    @classmethod
    def joined(cls, parts: "list[DeviceProfile]") -> "DeviceProfile":
        """Put the profiles of some roots after those of others."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        tied = torch.cat([part.tied_indptr.diff() for part in parts])
        return cls(
            torch.cat([part.nodes for part in parts]),
            torch.cat([part.weights for part in parts]),
            torch.cat([part.mass for part in parts]),
            first.num_nodes,
            torch.cat([part.kept for part in parts]),
            torch.cat([tied.new_zeros(1), tied.cumsum(0)]),
            torch.cat([part.tied_nodes for part in parts]),
            None if first.unassigned is None else torch.cat([part.unassigned for part in parts]),  # type: ignore[misc]
        )


TIE = 1e-9  # as in kernels/topk.py
ROOM = 4


def keep_top(
    rows: Tensor, nodes: Tensor, values: Tensor, roots: Tensor, num_nodes: int, k: int, tie: float
) -> DeviceProfile:
    """Return the profile that ``keep_top`` of kernels/topk.py makes of the values of several roots.

    Parameters
    ----------
    rows, nodes : int64 tensors (e,)
        Which root a value is of, and whose value it is. Equal values of a root stay in the order given.
    values : float64 tensor (e,)
        Above 0.
    roots : int64 tensor (r,)
    num_nodes, k : int
    tie : float
        Values at most this far from the k-th are one group.
    """
    order = torch.sort(values, descending=True, stable=True).indices
    order = order[torch.sort(rows[order], stable=True).indices]
    rows, nodes, values = rows[order], nodes[order], values[order]
    counts = torch.bincount(rows, minlength=len(roots))
    place = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
    leading = place < k
    top_nodes = torch.full((len(roots), k), -1, dtype=torch.int32, device=rows.device)
    top_nodes[rows[leading], place[leading]] = nodes[leading].int()
    top = torch.zeros(len(roots), k, dtype=torch.float64, device=rows.device)
    top[rows[leading], place[leading]] = values[leading]
    total = top.sum(1)

    apart = values - top[rows, -1]
    crowded = counts > k
    is_tied = (apart.abs() <= tie) & crowded[rows]
    above = torch.bincount(rows[apart > tie], minlength=len(roots))
    group = torch.bincount(rows[is_tied], minlength=len(roots))
    splits = crowded & (above + group > k)
    fits = splits & (above + group <= ROOM * k)
    # Dropping the group would leave nothing: the root alone stands for the row.
    alone = splits & ~fits & (above == 0)
    is_tied &= fits[rows]
    tied_rows = torch.cat([rows[is_tied], alone.nonzero().ravel()])
    tied_nodes = torch.cat([nodes[is_tied], roots[alone]])
    by_row = torch.sort(tied_rows, stable=True).indices
    tied = torch.bincount(tied_rows, minlength=len(roots))
    return DeviceProfile(
        nodes=top_nodes,
        weights=(top / total[:, None]).float(),
        mass=total,
        num_nodes=num_nodes,
        kept=torch.where(splits, above, counts.clamp_max(k)).int(),
        tied_indptr=torch.cat([tied.new_zeros(1), tied.cumsum(0)]),
        tied_nodes=tied_nodes[by_row].int(),
    )


logger = logging.getLogger(__name__)


@cache
def kernel(file: str, name: str, index: int, *definitions: str) -> Any:
    """Return a kernel for the CUDA device of that index, or None where Torch cannot compile one.

    Parameters
    ----------
    file, name : str
        Source in this folder, and the kernel's name in it.
    definitions : str
        Macros to define.
    """
    source = files("spinegraph.engines.gpu").joinpath(file).read_text()
    lines = [*(f"#define {definition}" for definition in definitions), source]
    try:
        with torch.cuda.device(index):
            return torch.cuda._compile_kernel("\n".join(lines), name)
    except (AttributeError, OSError, RuntimeError) as fault:
        logger.warning("%s: no compiled kernel, Torch's operations instead: %s", name, fault)
        return None


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
    """Return the largest table of so many bytes, with 16-bit slots."""
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


# As in kernels/push.py, which says why.
_FIRST_LEVEL = 0.7390851332151607
_NEXT_LEVEL = 0.5671432904097838
_NEXT_BOUNDED_LEVEL = 0.2078795763507619
_LEAST_LEVEL = 0.9999998765432101
_MARGIN = 1.0 - 1e-7
_MOST_SWEPT = 1 << 17
_SORTED_ROOTS = 1024


@dataclass(frozen=True)
class Limits:
    """When a root's push ends.

    Attributes
    ----------
    goal : float
        Residual mass.
    least : float
        Level of residual mass per neighbour; 0: none.
    budget : int
        Edges after which every node is pushed in every round; -1: never.
    """

    goal: float
    least: float
    budget: int

    @classmethod
    def of(cls, graph: DeviceGraph, continuation: float, tolerance: float, threshold: float) -> "Limits":
        """Return the limits that the CPU keeps."""
        goal, budget = tolerance * _MARGIN / continuation, -1
        if threshold == 0 and len(graph) <= _MOST_SWEPT:
            rest, rounds = 1.0, 0
            while rest > goal:
                rest, rounds = rest * continuation, rounds + 1
            budget = len(graph.indices) * rounds // 50
        return cls(goal, threshold * _LEAST_LEVEL, budget)


def push(
    graph: DeviceGraph,
    roots: Tensor,
    *,
    k: int,
    continuation: float,
    tolerance: float,
    threshold: float = 0.0,
) -> DeviceProfile:
    """Return the profile of some roots; see ``rooted_pagerank``.

    Parameters
    ----------
    graph : DeviceGraph
    roots : int64 tensor (r,)
    k, continuation, tolerance, threshold
    """
    limits = Limits.of(graph, continuation, tolerance, threshold)
    kernels = push_kernels(graph.device)
    if kernels is not None:
        bounds = (limits.goal, limits.least, limits.budget)
        return push_by_kernel(kernels, graph, roots, k, continuation, bounds)
    parts = [push_by_sorting(graph, some, k, continuation, limits) for some in roots.split(_SORTED_ROOTS)]
    return DeviceProfile.joined(parts or [push_by_sorting(graph, roots, k, continuation, limits)])


def push_by_sorting(
    graph: DeviceGraph, roots: Tensor, k: int, continuation: float, limits: Limits
) -> DeviceProfile:
    """Push several roots side by side, by Torch's operations alone."""
    state = _Residuals(graph, roots, continuation)
    degrees = graph.degrees[roots].clamp_min(1).double()
    level = (_FIRST_LEVEL / degrees).clamp_min(limits.least)  # (r,)
    falls = _NEXT_BOUNDED_LEVEL if limits.least > 0 else _NEXT_LEVEL
    running = graph.degrees[roots] > 0
    leaving = running[state.rows]  # the root is always pushed
    while bool(running.any()):
        state.push(leaving)
        over = (state.edges > limits.budget) if limits.budget >= 0 else torch.zeros_like(running)
        running &= (state.rest > limits.goal) & ~over
        leaving = state.above(level) & running[state.rows]
        busy = torch.zeros_like(running)
        busy[state.rows[leaving]] = True
        # Where no node is above the level it falls, until some node is or the last level is done.
        while bool((idle := running & ~busy).any()):
            running &= ~(idle & (level <= limits.least))
            idle &= running
            level = torch.where(idle, (level * falls).clamp_min(limits.least), level)
            leaving = state.above(level) & running[state.rows]
            busy = ~running
            busy[state.rows[leaving]] = True
    if limits.budget >= 0:
        state.sweep(state.edges > limits.budget, limits.goal)
    state.rest[graph.degrees[roots] == 0] = 0
    profile = keep_top(state.rows, state.nodes, state.values(), roots, len(graph), k, TIE)
    return replace(profile, unassigned=state.rest * continuation)


class _Residuals:
    """What the nodes that several roots reach hold; entries are ordered by root, then node."""

    def __init__(self, graph: DeviceGraph, roots: Tensor, continuation: float) -> None:
        self.graph, self.continuation, self.alone = graph, continuation, graph.degrees[roots] == 0
        self.rows, self.nodes = torch.arange(len(roots), device=graph.device), roots
        self.residual = torch.ones(len(roots), dtype=torch.float64, device=graph.device)
        self.received = self.residual.clone()
        self.rest = self.residual.clone()  # (r,)
        self.edges = torch.zeros(len(roots), dtype=torch.int64, device=graph.device)

    def above(self, level: Tensor) -> Tensor:
        """Say which entries hold more than their root's level per neighbour."""
        return self.residual > level[self.rows] * self.graph.degrees[self.nodes]

    def values(self) -> Tensor:
        """Return what each entry is worth: the part of all it received that it keeps."""
        return torch.where(self.alone[self.rows], 1.0, (1 - self.continuation) * self.received)

    def push(self, leaving: Tensor) -> None:
        """Spread the residuals of some entries, by what they held when the round began."""
        graph, amount = self.graph, self.residual[leaving]
        sources, rows = self.nodes[leaving], self.rows[leaving]
        self.residual = self.residual.masked_fill(leaving, 0.0)
        self.rest.index_add_(0, rows, -(1 - self.continuation) * amount)
        self.edges.index_add_(0, rows, graph.degrees[sources])
        edges, owners = graph.edges_of(sources)
        given = (self.continuation * amount / graph.strengths[sources])[owners]
        if graph.weights is not None:
            given = given * graph.weights[edges]
        n = len(graph)
        reached = rows[owners] * n + graph.indices[edges]
        keys, places = torch.unique(torch.cat([self.rows * n + self.nodes, reached]), return_inverse=True)
        held = len(self.rows)
        residual = self.residual.new_zeros(len(keys))
        received = residual.clone()
        residual[places[:held]], received[places[:held]] = self.residual, self.received
        self.residual = residual.index_add_(0, places[held:], given)
        self.received = received.index_add_(0, places[held:], given)
        self.rows, self.nodes = keys // n, keys % n

    def sweep(self, chosen: Tensor, goal: float) -> None:
        """Push every entry of some roots until their residual mass is down to the goal."""
        while bool((due := chosen & (self.rest > goal)).any()):
            self.push(due[self.rows] & (self.residual > 0))
