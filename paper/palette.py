"""Colours that the colour-blind can tell apart (Okabe and Ito), and the style of every figure."""

from typing import Any

from spinegraph.errors import MissingPackageError

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
    "#8C8C8C",
)
CLASSES = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW)
ROWS = {
    "SPINE": BLUE,
    "SPINE-p": SKY,
    "SPINE by walks": SKY,
    "SPINE (paper's settings)": PURPLE,
    "SPINE-p (paper's settings)": PURPLE,
    "GraphSAGE": RED,
    "GAT": GREEN,
    "struc2vec": ORANGE,
    "PCA of T F": BLACK,
    "T F": GREY,
    "T F by walks": GREY,
    "raw features": GREEN,
    "random W_M": RED,
    "log degree": PURPLE,
}
MARKERS = {"SPINE": "o", "GraphSAGE": "s", "PCA of T F": "^", "T F": "v", "raw features": "D", "Random": "x"}


def plotting() -> Any:
    """Return matplotlib's pyplot, drawing to files."""
    try:
        import matplotlib
    except ImportError as missing:
        raise MissingPackageError("figures need matplotlib: pip install 'spinegraph[reproduce]'") from missing
    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "legend.frameon": False,
            "figure.dpi": 150,
            "svg.hashsalt": "spinegraph",  # the same figure is the same file
            "svg.fonttype": "none",
        }
    )
    return pyplot
