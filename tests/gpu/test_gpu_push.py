"""Push by the CUDA kernel, compiled for the host or the device, against the CPU's kernel."""

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

from spinegraph import Config, Graph, made
from spinegraph.engines.gpu import push as push_kernel
from spinegraph.engines.gpu.engine import GpuEngine
from spinegraph.engines.gpu.graph import DeviceGraph
from spinegraph.parts.role import profile_of
from spinegraph.structure.pagerank import rooted_pagerank
from strategies import graphs

SETTINGS = st.fixed_dictionaries(
    {
        "k": st.integers(1, 12),
        "continuation": st.sampled_from([0.3, 0.5, 0.7, 0.9]),
        "tolerance": st.sampled_from([0.3, 0.05, 1e-3]),
        "threshold": st.sampled_from([1e-6, 5e-5, 1e-2]),
    }
)
HERE = Path(__file__).parent
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def kernel_by_host(folder: Path, name: str, *definitions: str):
    """push.cu as the host's compiler makes it: blocks of one thread, one after the other."""
    source = folder / f"{name}.cpp"
    kernel = files("spinegraph.engines.gpu").joinpath("push.cu")
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
    kernels = kernel_by_host(folder, "shared"), kernel_by_host(folder, "wide", "WIDE")
    patch = pytest.MonkeyPatch()
    patch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=1)
    )
    patch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 28, 1 << 28))
    patch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())

    def run(graph: Graph, shared_bytes: int, **how) -> torch.Tensor:
        patch.setattr(
            push_kernel, "shared_layout", lambda device, k: push_kernel.layout_within(shared_bytes, k)
        )
        links, roots = DeviceGraph.of(graph.adjacency(), "cpu"), torch.arange(len(graph))
        return push_kernel.push(kernels, links, roots, **how)

    yield run
    patch.undo()


def assert_mostly_alike(found, expected) -> None:
    """Where a residual lies within 1e-9 of a level, one of the two pushes it once more than the other."""
    apart = np.abs(found - expected).max(axis=1)
    assert (apart > 1e-6).mean() <= 5e-3
    assert apart.max() < 1e-3


@pytest.mark.compiled
@given(graphs(), SETTINGS)
@settings(max_examples=60, deadline=None)
def test_the_kernel_gives_the_profiles_of_the_cpu(by_host, graph, how):
    found = by_host(graph, 60_000, **how)
    expected = rooted_pagerank(graph, **how, threads=1).weights
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.compiled
def test_roots_that_reach_too_much_for_shared_memory_go_to_wide_tables(by_host):
    graph = made.random_graph(1200, 4, heavy_tailed=True)
    how = {"k": 20, "continuation": 0.7, "tolerance": 0.05, "threshold": 5e-5}
    found = by_host(graph, 20_000, **how)  # slots for a few hundred nodes
    assert_mostly_alike(found.numpy(), rooted_pagerank(graph, **how, threads=1).weights)


@pytest.mark.parametrize("device", DEVICES)
def test_some_roots_have_the_rows_that_they_have_among_all(device):
    found, graph, config = GpuEngine(device), made.karate(), Config(k=6, threads=1)
    every = found._profile(graph, config, np.arange(34))
    some = found._profile(graph, config, np.array([33, 0, 33]))
    np.testing.assert_array_equal(some.cpu(), every.cpu()[[33, 0, 33]])


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
    config, everybody = Config(k=30, near=0.7), np.arange(len(graph))
    found, again = (GpuEngine("cuda")._profile(graph, config, everybody).cpu().numpy() for _ in range(2))
    np.testing.assert_array_equal(found, again)
    assert_mostly_alike(found, profile_of(graph, config).weights)
