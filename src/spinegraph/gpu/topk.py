"""The k largest values of each root, and the nodes that tie at the last place, by sorting."""

import torch
from torch import Tensor

from spinegraph.gpu.profile import DeviceProfile

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

    Examples
    --------
    >>> some = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    >>> one = keep_top(torch.zeros(3).long(), torch.arange(3), some, torch.tensor([0]), 3, 2, TIE)
    >>> one.kept.tolist(), one.tied_nodes.tolist()
    ([1], [1, 2])
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
