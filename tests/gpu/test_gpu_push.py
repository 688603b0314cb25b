"""Push on a device, by kernel and by sorting, against the CPU's kernel."""

import contextlib
import ctypes
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spinegraph import Graph, made
from spinegraph.engines.gpu import push as push_kernel
from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.engines.gpu.push import DeviceProfile, Limits, push, push_by_sorting
from spinegraph.structure.pagerank import rooted_pagerank
from strategies import graphs

SETTINGS = st.fixed_dictionaries(
    {
        "k": st.integers(1, 12),
        "continuation": st.sampled_from([0.3, 0.5, 0.7, 0.9]),
        "tolerance": st.sampled_from([0.3, 0.05, 1e-3]),
        "threshold": st.sampled_from([0.0, 5e-5, 1e-2]),
    }
)
HERE = Path(__file__).parent


def kernel_by_host(folder: Path, name: str, *definitions: str):
    """push.cu as the host's compiler makes it: blocks of one thread, one after the other."""
    source = folder / f"{name}.cpp"
    kernel = files("spinegraph.gpu").joinpath("push.cu")
    lines = [
        f'#include "{HERE / "one_thread.h"}"',
        "static unsigned char memory[1 << 22];",
        f'#include "{kernel}"',
    ]
    source.write_text("\n".join(lines))
    flags = ["-O1", "-shared", "-fPIC", "-w", *(f"-D{macro}" for macro in definitions)]
    subprocess.run(["g++", *flags, "-o", folder / f"{name}.so", source], check=True)
    library = ctypes.CDLL(str(folder / f"{name}.so"))

    def run(grid, block, args, shared_mem):
        kinds = {
            torch.Tensor: lambda t: ctypes.c_void_p(t.data_ptr()),
            int: ctypes.c_int,
            float: ctypes.c_double,
        }
        library.push_roots(*(kinds[type(argument)](argument) for argument in args))

    run.set_shared_memory_config = lambda size: None
    return run


@pytest.fixture(scope="module")
def by_host(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile the kernel for the host")
    folder = tmp_path_factory.mktemp("kernel")
    kernels = push_kernel.Kernels(kernel_by_host(folder, "shared"), kernel_by_host(folder, "wide", "WIDE"))
    patch = pytest.MonkeyPatch()
    patch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=1)
    )
    patch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 28, 1 << 28))
    patch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())

    def run(graph: Graph, shared_bytes: int, k, continuation, tolerance, threshold) -> DeviceProfile:
        patch.setattr(
            push_kernel, "shared_layout", lambda device, k: push_kernel.layout_within(shared_bytes, k)
        )
        links, roots = DeviceGraph.of(graph, "cpu"), torch.arange(len(graph))
        limits = Limits.of(links, continuation, tolerance, threshold)
        bounds = (limits.goal, limits.least, limits.budget)
        return push_kernel.push_by_kernel(kernels, links, roots, k, continuation, bounds)

    yield run
    patch.undo()


def assert_alike(found: DeviceProfile, expected, within: float) -> None:
    np.testing.assert_allclose(found.weights.cpu(), expected.weights, atol=within)
    np.testing.assert_allclose(found.mass.cpu(), expected.mass, atol=within)
    np.testing.assert_allclose(found.unassigned.cpu(), expected.unassigned, atol=10 * within)
    np.testing.assert_array_equal(found.kept.cpu(), expected.kept)
    np.testing.assert_array_equal(found.tied_indptr.cpu(), expected.tied_indptr)
    operator = expected.operator().toarray()
    np.testing.assert_allclose(found.operator().dense().cpu(), operator, atol=max(within, 1e-6))


def assert_mostly_alike(found: DeviceProfile, expected) -> None:
    """Where a residual lies within 1e-9 of a level, one of the two pushes it once more than the other."""
    apart = np.abs(found.weights.cpu().numpy() - expected.weights).max(axis=1)
    assert (apart > 1e-6).mean() <= 5e-3
    assert apart.max() < 1e-3


@given(graphs(), SETTINGS)
@settings(max_examples=40, deadline=None)
def test_sorting_gives_the_profiles_of_the_cpu(graph, how):
    found = push(DeviceGraph.of(graph, "cpu"), torch.arange(len(graph)), **how)
    assert_alike(found, rooted_pagerank(graph, **how, threads=1), within=1e-7)


@pytest.mark.compiled
@given(graphs(), SETTINGS)
@settings(max_examples=60, deadline=None)
def test_the_kernel_gives_the_profiles_of_the_cpu(by_host, graph, how):
    assert_alike(by_host(graph, 60_000, **how), rooted_pagerank(graph, **how, threads=1), within=1e-6)


@pytest.mark.compiled
def test_roots_that_reach_too_much_for_shared_memory_go_to_wide_tables(by_host):
    graph = made.random_graph(1200, 4, heavy_tailed=True)
    how = {"k": 20, "continuation": 0.7, "tolerance": 0.05, "threshold": 5e-5}
    found = by_host(graph, 20_000, **how)  # slots for a few hundred nodes
    assert_mostly_alike(found, rooted_pagerank(graph, **how, threads=1))


def test_some_roots_have_the_rows_that_they_have_among_all():
    graph = made.karate()
    links, how = DeviceGraph.of(graph, "cpu"), {"k": 6, "continuation": 0.6, "tolerance": 1e-3}
    every = push(links, torch.arange(34), **how)
    some = push(links, torch.tensor([33, 0, 33]), **how)
    assert torch.equal(some.weights, every.weights[[33, 0, 33]])


def test_parts_joined_are_the_whole():
    graph = made.barbell(6, 2)
    limits = Limits.of(links := DeviceGraph.of(graph, "cpu"), 0.5, 1e-3, 0.0)
    whole = push_by_sorting(links, torch.arange(len(graph)), 4, 0.5, limits)
    joined = DeviceProfile.joined([whole.part(0, 5), whole.part(5, len(graph))])
    assert torch.equal(joined.operator().dense(), whole.operator().dense())


@pytest.mark.gpu
@pytest.mark.parametrize("heavy_tailed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_device_gives_the_profiles_of_the_cpu(heavy_tailed, weighted):
    graph = made.random_graph(4000, 8, heavy_tailed=heavy_tailed)
    if weighted:
        ends = np.stack([np.repeat(np.arange(len(graph)), graph.degrees), graph.indices], axis=1)
        ends = ends[ends[:, 0] < ends[:, 1]]
        weights = np.random.default_rng(0).random(len(ends)) + 0.1
        graph = Graph.from_edges(ends, num_nodes=len(graph), weights=weights)
    how = {"k": 30, "continuation": 0.7, "tolerance": 0.05, "threshold": 5e-5}
    found = push(DeviceGraph.of(graph, "cuda"), torch.arange(len(graph), device="cuda"), **how)
    again = push(DeviceGraph.of(graph, "cuda"), torch.arange(len(graph), device="cuda"), **how)
    expected = rooted_pagerank(graph, **how)
    assert torch.equal(found.weights, again.weights)
    assert torch.equal(found.nodes, again.nodes)
    assert_mostly_alike(found, expected)


@pytest.mark.gpu
def test_sweeps_on_the_device_are_those_of_the_cpu():
    graph = made.random_graph(3000, 3)
    how = {"k": 20, "continuation": 0.5, "tolerance": 1e-4, "threshold": 0.0}
    found = push(DeviceGraph.of(graph, "cuda"), torch.arange(3000, device="cuda"), **how)
    assert_alike(found, rooted_pagerank(graph, **how), within=1e-6)
