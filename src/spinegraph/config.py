"""Config: every setting of SPINE with its default, range and help."""

import re
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, NamedTuple

from spinegraph.errors import ParameterError

_DEVICE = re.compile(r"[a-z]+(:\d+)?")
_ADDRESS = re.compile(r"auto|local|[\w.\-\[\]:]+:\d{1,5}")
# Where the work is done, and by how many: the method is the same, though sums round otherwise and a device
# draws other pairs.
MACHINE = ("threads", "device", "engine", "address")
_CHOICES = {
    "rpr_method": ("push", "walks"),
    "structural_columns": ("auto", "past", "through", "none"),
    "feature_scaling": ("auto", "row", "row_sum", "column", "none"),
    "candidates": ("degree", "profile", "all"),
    "similarity": ("dtw", "euclidean", "cosine"),
    "activation": ("identity", "relu", "elu", "tanh"),
    "start": ("principal", "random"),
    "auxiliary_init": ("random", "node2vec"),
    "engine": ("local", "ray"),
}
_MOST = 2**63 - 1
_WHOLE = {  # name -> least and largest value; a row of T or a profile takes memory in proportion
    "dim": (1, 2**16),
    "k": (1, 2**12),
    "walks": (1, 2**12),
    "walk_length": (1, 2**12),
    "local_walks": (1, 2**12),
    "local_walk_length": (2, 2**12),
    "window": (1, _MOST),
    "negative_samples": (1, 2**24),
    "batch_size": (1, 2**24),
    "steps": (0, _MOST),
    "training_nodes": (2, _MOST),
    "seed": (0, _MOST),
}
_RANGES = {  # name -> (low, high, are the ends included?)
    "continuation": (0, 1, False),
    "tolerance": (0, 1, False),
    "threshold": (0, 1, True),
    "structural_rate": (0, 1, True),
    "structural_share": (0, 1, True),
    "norm_power": (0, 1, True),
    "negatives": (0, 1e6, True),
    "lambda1": (0, 1, True),
    "lambda2": (0, 1, True),
    "dropout": (0, 0.95, True),
    "learning_rate": (0, 1e6, False),
    "kept": (0, 1, True),
    "passes": (0, 1e9, False),
}
_OPTIONAL = {
    "threads": (1, 2**10),
    "patience": (1, _MOST),
}  # None is allowed as well
_OPEN = {"structural_share"}  # in a range, or None


@dataclass(frozen=True)
class Config:
    """Every setting of SPINE. ``check`` names all that is wrong at once.

    Attributes
    ----------
    dim : int
        Length d of a vector.
    k, continuation : int, float
        Length of the structural description, and the probability of going on rather than back to the root.
    rpr_method, tolerance, threshold, walks, walk_length
        How rooted PageRank is computed: by ``push`` to a tolerance, or to a threshold that bounds the edges
        passed per node, whichever comes first; or by counting ``walks``.
    structural_columns : {"auto", "past", "through", "none"}
        Columns made from structure alone: given to the generator as they are (past T), smoothed like other
        features (through T), or not at all. ``auto`` is ``past`` with features and ``through`` without.
    structural_share : float, optional
        Share of a vector's mean square that the structural columns' own channel gets (``past``). None: the
        less the features tell about the links, the more.
    feature_scaling : str
        How a raw feature matrix is scaled; see FeatureEncoder.
    structural_rate : float
        Probability alpha that a positive is structural rather than local.
    candidates, similarity
        Which nodes may be structural positives, and how profiles are compared.
    local_walks, local_walk_length, window
        Plain walks per node, their length, and how far apart two nodes on one are still local positives.
    negatives, negative_samples : float, int
        K, the weight of the negative term, and how many negatives a batch shares.
    lambda1, lambda2 : float
        Weights of the generator's own and the auxiliary's own term; the rest weighs each cross term.
    activation, start, auxiliary_init
        The generator's activation, where its matrix starts, and where the auxiliary matrix starts
        (``node2vec`` is SPINE-p).
    norm_power : float
        Features that came through T are divided by this power of their length: 0 leaves it, 1 makes all of
        one length.
    kept : float
        Share of the untrained inner products of T F in those of the vectors: what learning forgets is still
        there.
    batch_size, steps, passes, learning_rate, dropout
        Training: pairs a step, steps at most, times an edge is met on average at most, Adam's rate, share of
        the generator's inputs dropped in a step.
    training_nodes : int
        At most this many nodes take part in training, so its cost stops growing with the network.
    patience : int, optional
        Stop when the loss of held-out pairs has not fallen for so many evaluations; None trains all steps.
    seed, threads, device
        Every draw follows from ``seed``; the result is the same for any number of threads.
    engine : {"local", "ray"}
        Who runs the stages: this process, or tasks on a Ray cluster; the vectors are the same.
    address : str, optional
        The Ray cluster: ``HOST:PORT``, ``auto`` for one running on this machine, ``local`` to start one here.
        None: what RAY_ADDRESS says, else ``local``.
    """

    dim: int = 200
    k: int = 30
    continuation: float = 0.7
    rpr_method: str = "push"
    tolerance: float = 0.05
    threshold: float = 5e-5
    walks: int = 10
    walk_length: int = 40
    structural_columns: str = "auto"
    structural_share: float | None = None
    feature_scaling: str = "auto"
    structural_rate: float = 0.1
    candidates: str = "profile"
    similarity: str = "dtw"
    local_walks: int = 10
    local_walk_length: int = 40
    window: int = 15
    negatives: float = 1.0
    negative_samples: int = 100
    lambda1: float = 0.4
    lambda2: float = 0.4
    activation: str = "identity"
    norm_power: float = 0.5
    start: str = "principal"
    kept: float = 0.5
    auxiliary_init: str = "random"
    batch_size: int = 512
    steps: int = 300
    passes: float = 30.0
    learning_rate: float = 1e-3
    dropout: float = 0.0
    training_nodes: int = 20_000
    patience: int | None = None
    seed: int = 0
    threads: int | None = None
    device: str = "cpu"
    engine: str = "local"
    address: str | None = None

    @classmethod
    def paper(cls, **changes: Any) -> "Config":
        """Return the paper's values; where it states none, those of its reference code.

        >>> Config.paper().structural_rate, Config.paper().window
        (0.5, 5)
        """
        paper: dict[str, Any] = {
            "k": 20,
            "continuation": 0.5,
            "rpr_method": "walks",
            "structural_columns": "none",
            "structural_rate": 0.5,
            "candidates": "degree",
            "window": 5,
            "negative_samples": 50,
            "lambda2": 0.2,
            "activation": "relu",
            "norm_power": 0.0,
            "start": "random",
            "kept": 0.0,
            "passes": 1e6,
        }
        return cls(**{**paper, **changes})

    def check(self) -> "Config":
        """Return the settings as plain values, or raise one ParameterError that lists every wrong one.

        NumPy's numbers become Python's.

        >>> Config(dim=0, lambda1=0.8, lambda2=0.8).check()
        Traceback (most recent call last):
        spinegraph.errors.ParameterError: dim must be a whole number from 1 to 65536; got 0
        lambda1 + lambda2 must be at most 1, the rest weighs the cross terms; got 0.8 + 0.8
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        wrong = [message for name, value in given.items() if (message := _fault(name, value))]
        weighs = not any(_fault(name, given[name]) for name in ("lambda1", "lambda2"))
        if weighs and self.lambda1 + self.lambda2 > 1 + 1e-9:
            wrong.append(
                "lambda1 + lambda2 must be at most 1, the rest weighs the cross terms; "
                f"got {self.lambda1} + {self.lambda2}"
            )
        if wrong:
            raise ParameterError("\n".join(wrong))
        return Config(**{name: _plain(name, value) for name, value in given.items()})

    def deciding(self) -> dict[str, Any]:
        """Return the settings that vectors follow from: all but those of the machine.

        >>> "threads" in Config().deciding()
        False
        """
        return {name: value for name, value in self.to_json().items() if name not in MACHINE}

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return asdict(self)


def choices(name: str) -> tuple[str, ...] | None:
    """Return the values that a setting is chosen from, or None where it is a number.

    >>> choices("start")
    ('principal', 'random')
    """
    return _CHOICES.get(name)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: Any, least: int, largest: int) -> bool:
    is_whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    return is_whole and not isinstance(value, bool) and least <= value <= largest


def _plain(name: str, value: Any) -> Any:
    """Return a value that passed as Python's own kind."""
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    return float(value) if name in _RANGES else int(value)


def _fault(name: str, value: Any) -> str | None:
    """Return what is wrong with one setting, or None."""
    if name in _CHOICES:
        if isinstance(value, str) and value in _CHOICES[name]:
            return None
        return f"{name} must be one of {', '.join(map(repr, _CHOICES[name]))}; got {value!r}"
    if name in _RANGES:
        if value is None and name in _OPEN:
            return None
        low, high, closed = _RANGES[name]
        if _is_number(value) and (low <= value <= high if closed else low < value < high):
            return None
        rule = f"{'None or ' * (name in _OPEN)}{'' if closed else 'strictly '}between {low} and {high:g}"
        return f"{name} must be {rule}; got {value!r}"
    if name == "device":
        if isinstance(value, str) and _DEVICE.fullmatch(value):
            return None
        return f"device must name a Torch device such as 'cpu', 'cuda' or 'cuda:1'; got {value!r}"
    if name == "address":
        if value is None or (isinstance(value, str) and _ADDRESS.fullmatch(value)):
            return None
        rule = "HOST:PORT of a Ray cluster's head, without ray://, or 'auto', 'local' or None"
        return f"address must be {rule}; got {value!r}"
    if value is None and name in _OPTIONAL:
        return None
    least, largest = (_WHOLE | _OPTIONAL)[name]
    if _is_whole(value, least, largest):
        return None
    whole = f"a whole number >= {least}" if largest == _MOST else f"a whole number from {least} to {largest}"
    return f"{name} must be {'None or ' * (name in _OPTIONAL)}{whole}; got {value!r}"


class Advice(NamedTuple):
    """About one setting, in Markdown.

    Attributes
    ----------
    changes : str
        What it changes.
    touch : str
        When to touch it.
    """

    changes: str
    touch: str


ADVICE: dict[str, dict[str, Advice]] = {  # group -> setting -> advice
    "Size, seed, machine": {
        "dim": Advice(
            "length of a vector",
            "smaller to store or search more nodes; little is gained above 200",
        ),
        "seed": Advice("what every draw follows from", "to see how much a result owes to chance"),
        "threads": Advice(
            "threads of kernels, which do all but training; None takes all cores",
            "1 on a busy machine; the vectors stay the same",
        ),
        "device": Advice("where a fit computes", "'cuda' with a GPU"),
        "engine": Advice(
            "who runs the stages: this process, or tasks on a Ray cluster",
            "'ray' for networks that one machine would take hours for; the vectors stay the same",
        ),
        "address": Advice(
            "with the Ray engine, its cluster: HOST:PORT, 'auto' for the one running on this machine, "
            "'local' to start one; None takes RAY_ADDRESS, else 'local'",
            "on a cluster; see [On a cluster](cluster.md)",
        ),
    },
    "Where a node stands": {
        "continuation": Advice(
            "how far a node looks: chance of going on rather than back to the root",
            "up (0.8) where features are sparse or noisy, down where neighbours differ",
        ),
        "k": Advice("nodes kept in T and in the profile", "up together with `continuation`"),
        "rpr_method": Advice("exact to a tolerance, or counted on walks", "'walks' to reproduce the paper"),
        "tolerance": Advice(
            "largest share of probability that push leaves unassigned",
            "down for exact profiles, up for speed on dense networks",
        ),
        "threshold": Advice(
            "push also ends where every residual is at most this much per neighbour: a node then passes at "
            "most 1 / (threshold (1 - continuation)) edges, however dense the network",
            "0 to reach `tolerance` everywhere, up for speed",
        ),
        "walks": Advice("walks per node, for 'walks'", "up for less noise"),
        "walk_length": Advice(
            "length of those walks", "as `walks`; the start counts, so short walks favour the root"
        ),
    },
    "What the generator reads": {
        "feature_scaling": Advice(
            "how raw features are scaled, see FeatureEncoder",
            "'none' if they are scaled already",
        ),
        "structural_columns": Advice(
            "columns made from structure: beside the smoothed features ('past'), smoothed too "
            "('through'), or 'none'; 'auto' is 'past' with features and 'through' without",
            "'none' if only content should count",
        ),
        "structural_share": Advice(
            "share of a vector's mean square that 'past' columns get; None: the less the features tell about "
            "the links the more",
            "up if roles matter more than places, 0 to turn them off",
        ),
        "kept": Advice(
            "share of the untrained inner products of T F in those of the vectors: what learning forgets is "
            "still there",
            "0 for nothing but what is trained",
        ),
        "norm_power": Advice(
            "features averaged by T are divided by this power of their length: 0 leaves it, 1 makes all "
            "of one length",
            "0 if lengths should tell lone nodes from central ones",
        ),
        "activation": Advice("last step of the generator", "seldom"),
        "start": Advice("where W_M starts", "'random' to reproduce the paper"),
    },
    "Pairs": {
        "structural_rate": Advice(
            "chance that a positive is a structural twin rather than a neighbour",
            "up if roles matter more than places",
        ),
        "candidates": Advice(
            "who may be a twin: nearest in degree, ties by profile ('profile') or by position "
            "('degree'), or everybody ('all')",
            "'all' on small networks",
        ),
        "similarity": Advice(
            "how profiles are compared",
            "'euclidean' or 'cosine' as the paper's alternatives",
        ),
        "local_walks": Advice("plain walks per node", "up on small networks for more pairs"),
        "local_walk_length": Advice("length of those walks", "seldom"),
        "window": Advice(
            "how far apart on a walk two nodes are still neighbours",
            "down for tighter neighbourhoods",
        ),
    },
    "Objective and training": {
        "negatives": Advice("K, weight of the negative term", "seldom; large values hurt"),
        "negative_samples": Advice("negatives that a batch shares", "seldom"),
        "lambda1": Advice("weight of the generator's own term", "seldom"),
        "lambda2": Advice(
            "weight of the auxiliary matrix's own term; 1 - both weighs each cross term",
            "seldom",
        ),
        "auxiliary_init": Advice(
            "where W_S starts: 'node2vec' trains it on local pairs first (SPINE-p)",
            "to try the paper's SPINE-p",
        ),
        "batch_size": Advice("pairs a step", "up on a GPU"),
        "steps": Advice(
            "training steps, at most",
            "up if the history's held-out loss is still falling; long training forgets features",
        ),
        "passes": Advice(
            "times that an edge is met on average, at most: ends training on small networks before `steps`",
            "up if the held-out loss is still falling",
        ),
        "learning_rate": Advice("Adam's rate", "with `steps`"),
        "dropout": Advice(
            "share of inputs left out in a step",
            "0.2 to 0.5 against overfitting on few nodes",
        ),
        "training_nodes": Advice(
            "most nodes that take part in training",
            "up if a large network has many kinds of places",
        ),
        "patience": Advice(
            "stop after so many evaluations without a lower held-out loss; None trains all steps",
            "with a large `steps`",
        ),
    },
}
