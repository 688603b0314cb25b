"""A model and its vectors as small tables of HTML, for notebooks."""

from typing import TYPE_CHECKING, Any

from spinegraph.config import Config
from spinegraph.graph.html import html_table

if TYPE_CHECKING:
    from spinegraph.embeddings import Embeddings

_ROWS, _COLUMNS, _NAMES = 5, 6, 8


def embeddings_html(embeddings: "Embeddings") -> str:
    """Return the first vectors, and how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from spinegraph.embeddings import Embeddings
    >>> "0.500" in embeddings_html(Embeddings(np.array(["ann"], dtype=object), np.full((1, 2), 0.5)))
    True
    """
    columns = min(_COLUMNS, embeddings.dim)
    dots = ("...",) if embeddings.dim > columns else ()
    rows = [
        (name, *(f"{value:.3f}" for value in vector[:columns]), *dots)
        for name, vector in zip(embeddings.names[:_ROWS].tolist(), embeddings.vectors[:_ROWS], strict=True)
    ]
    if len(embeddings) > _ROWS:
        rows.append((f"... and {len(embeddings) - _ROWS:,} more",))
    head = ("name", *range(columns), *dots)
    return html_table(f"Embeddings: {len(embeddings):,} nodes, {embeddings.dim} dimensions", rows, head)


def model_html(model: Any) -> str:
    """Return a model's changed settings, what it was fitted on and how that went.

    Examples
    --------
    >>> from spinegraph import SPINE
    >>> "not fitted" in model_html(SPINE(dim=8))
    True
    """
    params = model.get_params()
    changed = {name: value for name, value in params.items() if value != getattr(Config, name)}
    settings = ", ".join(f"{name}={value!r}" for name, value in changed.items()) or "all as by default"
    rows: list[tuple[object, ...]] = [("settings", settings)]
    if not hasattr(model, "generator_"):
        return html_table("SPINE, not fitted", rows)
    graphs = model.graph_ if isinstance(model.graph_, list) else [model.graph_]
    if model.graph_ is not None:
        rows += [("fitted on", repr(graph)) for graph in graphs[:_ROWS]]
    names = model.generator_.inputs.names
    rows.append(("reads", ", ".join(names[:_NAMES]) + ", ..." * (len(names) > _NAMES)))
    rows.append(("vectors", f"{model.generator_.dim} numbers, activation {model.generator_.activation}"))
    if model.history_:
        first, last = model.history_[0], model.history_[-1]
        losses = f"{first.held_out_loss:.3f} to {last.held_out_loss:.3f} on held-out pairs"
        rows.append(("training", f"{last.step:,} steps, loss {losses}"))
    rows.append(
        ("look further", "sg.plot.map(model), sg.plot.twins(model, a, b), sg.plot.profile(model, [a, b])")
    )
    return html_table(f"SPINE, fitted on {len(model.familiarity_):,} nodes", rows)
