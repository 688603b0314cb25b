"""How near a service's vectors stay to a transform of the whole graph, and how many it computes anew."""

import warnings

import numpy as np
from benchmarks.service_load import Requests


def near(folder, count=300):
    """Add nodes with three edges each one by one, and compare all vectors with ``transform`` at the end."""
    from spinegraph import SPINE
    from spinegraph.apps.server.live import Live
    from spinegraph.apps.server.schemas import NewNode
    from spinegraph.apps.server.service import RequestReader

    model = SPINE.load(folder)
    live, reader = Live(model.generator_, model.graph_), RequestReader(model.graph_)
    live.compute_all(model.embeddings_.vectors)
    inserts, refreshed = Requests(model.graph_).inserts(), 0
    for _ in range(count):
        _, _, body = next(inserts)
        refreshed += len(live.apply(reader.nodes(NewNode(**body), live.snapshot.overlay)).refreshed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = model.transform(live.snapshot.overlay).vectors
    found = live.snapshot.vectors.matrix()
    cosines = (found * whole).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(whole, axis=1)
    return {
        "inserted": count,
        "refreshed_each": round(refreshed / count, 1),
        "cosine_median": round(float(np.median(cosines)), 6),
        "cosine_hundredth": round(float(np.percentile(cosines, 1)), 6),
        "cosine_least": round(float(cosines.min()), 6),
    }
