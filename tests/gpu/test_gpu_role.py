"""Structural columns on a device against the CPU's."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from spinegraph import Config, Graph, made
from spinegraph.engines.gpu import role as on_device
from spinegraph.engines.gpu.engine import GpuEngine
from spinegraph.parts.content import smoothers
from spinegraph.parts.role import Role, Surroundings, names_of, profile_of, role_columns
from strategies import graphs

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
GRAPHS = {
    "karate": made.karate(),
    "barbell": made.barbell(8, bridge=3),
    "star": Graph.from_edges([(0, other) for other in range(1, 60)]),
    "no links": Graph.from_edges(np.zeros((0, 2), int), num_nodes=5),
    "one node": Graph.from_edges(np.zeros((0, 2), int), num_nodes=1),
    "heavy tail": made.random_graph(700, 8, heavy_tailed=True),
    "weighted, with isolated nodes": Graph.from_edges(
        [(1, 2), (2, 3), (3, 1), (3, 5)], num_nodes=8, weights=[0.5, 2, 3, 1e-3]
    ),
    "directed": Graph.from_edges(
        [(a, b) for a in range(30) for b in (a * 7 % 30, a * a % 30, a // 3) if a != b],
        num_nodes=33,
        directed=True,
    ),
}


def assert_columns_agree(graph, device):
    config, everyone = Config(threads=1), np.arange(len(graph))
    profile = profile_of(graph, config)
    around = Surroundings.of(graph, smoothers(graph, config))
    expected = role_columns(graph, config, everyone, around, profile)
    own, beside = (part.cpu().numpy() for part in GpuEngine(device)._structure(graph, config))
    ranked = on_device.profile_columns(torch.as_tensor(profile.weights, device=device)).cpu().numpy()
    found = np.hstack([own, ranked[:, :1], beside, ranked[:, 1:]])
    names = names_of(graph.directed)
    assert found.shape == expected.shape == (len(graph), len(names))
    for column, name in enumerate(names):
        # A deviation is the root of a difference, which magnifies rounding.
        within = 2e-3 if name.endswith("deviation") else 3e-6
        np.testing.assert_allclose(
            found[:, column], expected[:, column], rtol=1e-5, atol=within, err_msg=name
        )
    role = Role.fit(expected, 12, 0)
    given = torch.as_tensor(expected, device=device)
    np.testing.assert_allclose(on_device.embed(role, given).cpu(), role.embed(expected), atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("block", [1, 50, 1 << 25])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_columns_are_those_of_the_cpu(monkeypatch, graph, block, device):
    monkeypatch.setattr(on_device, "_BLOCK", block)
    assert_columns_agree(graph, device)


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_columns_of_small_graphs_are_those_of_the_cpu(graph):
    assert_columns_agree(graph, "cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("ends", "size", "blocks"), [([0], 4, []), ([0, 0, 0], 4, [(0, 2)]), ([0, 3, 9, 10], 4, [(0, 1), (1, 3)])]
)
def test_blocks_hold_all_rows(device, ends, size, blocks):
    assert list(on_device.blocks_of(torch.tensor(ends, device=device), size)) == blocks


@pytest.mark.parametrize("width", [3, 12, 60])
def test_short_and_long_parts_are_those_of_the_cpu(width):
    columns = np.random.default_rng(0).standard_normal((50, 34)).astype(np.float32)
    role = Role.fit(columns, width, 0)
    np.testing.assert_allclose(
        on_device.embed(role, torch.from_numpy(columns)), role.embed(columns), atol=1e-5
    )
