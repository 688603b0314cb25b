import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinegraph.kernels.dtw import copy_owned, owned_slots


@given(st.integers(1, 7), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_every_pair_has_one_owner_and_reaches_both_rows(n, c, seed):
    rng = np.random.default_rng(seed)
    table = np.full((n, c), np.iinfo(np.int32).max, dtype=np.int32)
    for node in range(n):
        others = np.delete(np.arange(n), node)
        named = np.sort(rng.permutation(others)[: rng.integers(0, c + 1)])
        table[node, : len(named)] = named
    slots = owned_slots(table, 0, n)
    pairs = [frozenset((int(slot) // c, int(table.ravel()[slot]))) for slot in slots]
    wanted = {frozenset((node, int(other))) for node in range(n) for other in table[node] if other < n}
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == wanted
    values = np.full((n, c), np.nan)
    values.reshape(-1)[slots] = [min(pair) * 10 + max(pair) for pair in pairs]
    copy_owned(table, values, 0, n)
    for node in range(n):
        for slot in range(c):
            other = int(table[node, slot])
            assert other >= n or values[node, slot] == min(node, other) * 10 + max(node, other)
