"""The parameter studies on subPPI: the structural rate alpha, and lambda_1 with lambda_2."""

from paper.cells import Values
from paper.item import Item
from paper.items.tissues import F1, scores
from paper.method import Method
from paper.rows import VARIANTS, spine_row

_ROWS = ("SPINE", "SPINE (paper's settings)")
_LAMBDAS = {  # lambda_1, lambda_2: micro-F1, macro-F1 of the paper
    (0.2, 0.2): (47.1, 32.0),
    (0.2, 0.4): (47.0, 31.4),
    (0.2, 0.6): (46.6, 30.5),
    (0.4, 0.2): (47.2, 32.1),
    (0.4, 0.4): (47.8, 30.5),
    (0.6, 0.2): (46.7, 31.2),
    (1.0, 0.0): (45.4, 30.4),
}


def setting(case: str, name: str) -> Method:
    """Return SPINE with the settings that a case names, such as ``alpha 0.2`` or ``lambda 0.4 0.2``."""
    kind, *values = case.split()
    if kind == "alpha":
        changed = {"structural_rate": float(values[0])}
    else:
        changed = {"lambda1": float(values[0]), "lambda2": float(values[1])}
    return spine_row(name, {**VARIANTS[name], **changed})


def measure(case: str, name: str, seed: int) -> Values:
    """Return the F1 scores on subPPI's test network."""
    return scores("subPPI", setting(case, name), seed)


def _version(case: str, name: str) -> str:
    return setting(case, name).version


ITEMS = {
    "alpha": Item(
        "alpha",
        "Figure: effect of alpha on subPPI (approximate labels)",
        tuple(f"alpha {alpha:.1f}" for alpha in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        _ROWS,
        measure,
        F1,
        figure_only=("SPINE",),
        version_of=_version,
        quick=("SPINE",),
        quick_cases=("alpha 0.0", "alpha 1.0"),
    ),
    "lambda": Item(
        "lambda",
        "Table: effects of lambda_1 and lambda_2 on subPPI (approximate labels)",
        tuple(f"lambda {first} {second}" for first, second in _LAMBDAS),
        _ROWS,
        measure,
        F1,
        {
            ("SPINE", f"lambda {first} {second}", key): value
            for (first, second), values in _LAMBDAS.items()
            for key, value in zip(("micro", "macro"), values, strict=True)
        },
        version_of=_version,
        quick=("SPINE",),
        quick_cases=("lambda 0.4 0.2", "lambda 1.0 0.0"),
    ),
}
