"""Config and PaperConfig: every setting of SPINE and of SPINE.paper, with default, range and help."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from numbers import Integral, Real
from typing import Any, TypeVar

from spinegraph.errors import ParameterError

MAX_INT = 2**63 - 1
Self = TypeVar("Self", bound="_Settings")
PARTS = ("content", "place", "role")
# Settings that say where the work runs. They change vectors at most by rounding.
MACHINE_SETTINGS = ("threads", "device", "engine", "address")


def setting(
    default: Any,
    help: str,
    when: str = "seldom",
    *,
    group: str = "",
    between: tuple[float, float] = (0, MAX_INT),
    strict: bool = False,
    choices: tuple[str, ...] | None = None,
    pattern: tuple[str, str] | None = None,
) -> Any:
    """Declare a setting: what it changes and when to change it (both Markdown), and its heading in the help.

    A number must lie ``between`` two bounds, inclusive unless ``strict``; a string must be one of ``choices``
    or match ``pattern``: a regular expression and the rule in words.
    """
    about = {"help": help, "when": when, "group": group, "between": between, "strict": strict}
    return field(default=default, metadata={**about, "choices": choices, "pattern": pattern})


_OPEN: Any = {"between": (0, 1), "strict": True}  # the open interval
_size = partial(setting, group="Size, seed, machine")
_reach = partial(setting, group="How far a node looks")
_learning = partial(setting, group="Features and learning")
_dim = partial(
    _size, 200, "length of a vector", "down to store more; above 200 little is gained", between=(1, 2**16)
)
_seed = partial(
    _size, 0, "random seed: the same seed gives the same vectors", "to see how much a result owes to chance"
)
_threads = partial(
    _size,
    None,
    "number of CPU threads; None uses all cores",
    "1 on a busy machine; the vectors stay the same",
    between=(1, 2**10),
)


@dataclass(frozen=True)
class _Settings:
    """Base class of Config and PaperConfig."""

    def check(self: Self) -> Self:
        """Return the settings as plain Python values, or raise one ParameterError that lists every wrong one.

        >>> PaperConfig(dim=0, lambda1=0.8, lambda2=0.8).check()
        Traceback (most recent call last):
        spinegraph.errors.ParameterError: dim must be a whole number from 1 to 65536; got 0
        lambda1 + lambda2 must be at most 1, since the rest weights the cross terms; got 0.8 + 0.8
        """
        plain, wrong = dict[str, Any](), list[str]()
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name in _CHECKS:
                fault, plain[each.name] = _CHECKS[each.name](value)
            else:
                fault = _broken_rule(each.type, each.metadata, value)
                plain[each.name] = value if fault or value is None else _kind(each.type)(value)
            if fault:
                wrong.append(f"{each.name} must {fault}; got {value!r}")
        are_numbers = not any(line.startswith("lambda") for line in wrong)
        if are_numbers and plain.get("lambda1", 0) + plain.get("lambda2", 0) > 1 + 1e-9:
            wrong.append(
                "lambda1 + lambda2 must be at most 1, since the rest weights the cross terms; "
                f"got {plain['lambda1']} + {plain['lambda2']}"
            )
        if wrong:
            raise ParameterError("\n".join(wrong))
        return type(self)(**plain)

    def deciding(self) -> dict[str, Any]:
        """Return the settings that determine the vectors: all but ``MACHINE_SETTINGS``."""
        return {name: value for name, value in self.to_json().items() if name not in MACHINE_SETTINGS}

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Config(_Settings):
    """Every setting of SPINE, documented there; ``check`` reports all wrong ones at once."""

    dim: int = _dim()
    parts: tuple[str, ...] = _size(
        PARTS,
        "parts of a vector: 'content' (the features of a node and around it), 'place' (where in the training "
        "network it is), 'role' (hub, bridge, periphery); content needs features, place a single network",
        "fewer if one of them should not count",
    )
    weights: Mapping[str, float] | None = _size(
        None, "weight of each part, 1 by default: `{'role': 2}`", "better at query time, without a new fit"
    )
    seed: int = _seed()
    threads: int | None = _threads()
    device: str = _size(
        "cpu",
        "device for fitting and for embedding whole graphs",
        "'cuda' with a GPU",
        pattern=(r"cpu|cuda(:\d+)?", "be 'cpu', 'cuda' or a numbered GPU such as 'cuda:1'"),
    )
    engine: str = _size(
        "local",
        "execution backend: this process, or tasks on a Ray cluster",
        "'ray' for networks that take hours on one machine; the vectors stay the same",
        choices=("local", "ray"),
    )
    address: str | None = _size(
        None,
        "the Ray cluster, for the Ray engine: HOST:PORT, 'auto' for one already running on this machine, "
        "'local' to start one; None uses RAY_ADDRESS, or else 'local'",
        "on a cluster; see [On a cluster](cluster.md)",
        pattern=(
            r"auto|local|[\w.\-\[\]:]+:\d{1,5}",
            "be HOST:PORT of a Ray cluster's head, without ray://, or 'auto', 'local' or None",
        ),
    )

    near: float = _reach(
        0.5,
        "probability that a walk continues rather than stops, for everything near a node: its profile, its "
        "place and the features near it",
        **_OPEN,
    )
    far: float = _reach(
        0.9, "the same for features farther away", "up (0.98) if a node's own features say little", **_OPEN
    )
    tolerance: float = _reach(
        0.01, "largest error of smoothed values, relative to their change", "up for speed", **_OPEN
    )
    k: int = _reach(20, "length of a profile, the structural description of a node", between=(1, 2**12))
    rpr_method: str = _reach(
        "push", "profiles by push, exact to a tolerance, or by counting walks", choices=("push", "walks")
    )
    walks: int = _reach(10, "walks per node, for 'walks'", "up for less noise", between=(1, 2**12))
    walk_length: int = _reach(40, "length of those walks", between=(1, 2**12))

    feature_scaling: str = _learning(
        "auto",
        "how a raw feature matrix is scaled, see FeatureEncoder; 'auto' leaves tables as they were encoded",
        "'none' if the features are scaled already",
        choices=("auto", "row", "row_sum", "column", "none"),
    )
    learning: bool = _learning(
        True,
        "whether content learns which directions of the features predict hidden links",
        "off to compare with plain smoothing",
    )
    training_nodes: int = _learning(
        20_000,
        "largest number of nodes that means and directions are fitted on",
        "up if a large network has many kinds of nodes",
        between=(2, MAX_INT),
    )


@dataclass(frozen=True)
class PaperConfig(_Settings):
    """Every setting of ``SPINE.paper``, with the paper's values or else those of its published code."""

    dim: int = _dim()
    seed: int = _seed()
    threads: int | None = _threads()
    continuation: float = setting(
        0.5,
        "how far a node looks: probability that a walk continues rather than returns to its root",
        "up (0.8) where features are sparse or noisy, down where neighbours differ",
        **_OPEN,
    )
    k: int = setting(20, "nodes kept per row of T and profile", "up with `continuation`", between=(1, 2**12))
    rpr_method: str = setting(
        "walks", "push, exact to a tolerance, or walks", "'walks' as in the paper", choices=("push", "walks")
    )
    tolerance: float = setting(
        0.05,
        "largest share of probability that push leaves unassigned",
        "down for exact profiles, up for speed on dense networks",
        **_OPEN,
    )
    threshold: float = setting(
        5e-5,
        "push also stops once every residual is at most this much per neighbour: a node then costs at "
        "most 1 / (threshold (1 - continuation)) edges, however dense the network is",
        "0 to reach `tolerance` everywhere, up for speed",
        between=(0, 1),
    )
    walks: int = setting(10, "walks per node, for 'walks'", "up for less noise", between=(1, 2**12))
    walk_length: int = setting(
        40, "length of those walks", "as `walks`; short ones favour the root", between=(1, 2**12)
    )

    feature_scaling: str = setting(
        "auto",
        "how raw features are scaled, see FeatureEncoder",
        "'none' if they are scaled already",
        choices=("auto", "row", "row_sum", "column", "none"),
    )
    activation: str = setting("relu", "output activation", choices=("identity", "relu", "elu", "tanh"))
    structural_rate: float = setting(
        0.5,
        "probability that a positive is a structural twin rather than a neighbour",
        "up if roles matter more than places",
        between=(0, 1),
    )
    candidates: str = setting(
        "degree",
        "which nodes may be twins: the nearest in degree, ties broken by profile ('profile') or by position "
        "('degree'), or all nodes ('all')",
        "'all' on small networks",
        choices=("degree", "profile", "all"),
    )
    similarity: str = setting(
        "dtw",
        "how profiles are compared",
        "'euclidean' or 'cosine' as the paper's alternatives",
        choices=("dtw", "euclidean", "cosine"),
    )
    local_walks: int = setting(10, "plain walks per node", "up on small networks", between=(1, 2**12))
    local_walk_length: int = setting(40, "length of those walks", between=(2, 2**12))
    window: int = setting(
        5, "most steps between neighbours on a walk", "down for tighter neighbourhoods", between=(1, MAX_INT)
    )

    negatives: float = setting(1.0, "K, weight of negatives", "seldom; large values hurt", between=(0, 1e6))
    negative_samples: int = setting(50, "negatives shared by a batch", between=(1, 2**24))
    lambda1: float = setting(0.4, "weight of the generator's own term", between=(0, 1))
    lambda2: float = setting(
        0.2, "weight of the auxiliary matrix's own term; cross terms get 1 - both", between=(0, 1)
    )
    auxiliary_init: str = setting(
        "random",
        "where W_S starts: 'node2vec' trains it on local pairs first (SPINE-p)",
        "to try the paper's SPINE-p",
        choices=("random", "node2vec"),
    )
    batch_size: int = setting(512, "pairs per step", between=(1, 2**24))
    steps: int = setting(
        300, "most training steps", "up if the held-out loss still falls; long training forgets features"
    )
    learning_rate: float = setting(1e-3, "learning rate", "with `steps`", between=(0, 1e6), strict=True)
    dropout: float = setting(
        0.0, "share of inputs dropped in a step", "0.2 to 0.5 if few nodes overfit", between=(0, 0.95)
    )
    training_nodes: int = setting(
        20_000, "most nodes trained on", "up if a large network has many kinds of nodes", between=(2, MAX_INT)
    )
    patience: int | None = setting(
        None,
        "stop after this many evaluations without a lower held-out loss; None trains all steps",
        "with a large `steps`",
        between=(1, MAX_INT),
    )


def _kind(annotation: Any) -> type:
    """Return the type of a setting: bool, int, float or str, also for ``int | None``."""
    return next(kind for kind in (bool, int, float, str) if annotation in (kind, kind | None))


def _broken_rule(annotation: Any, about: Any, value: Any) -> str | None:
    """Return the rule that a value breaks, or None."""
    kind, (low, high) = _kind(annotation), about["between"]
    is_optional = annotation == kind | None
    if value is None and is_optional:
        return None
    if kind is str:
        choices = about["choices"]
        pattern, rule = about["pattern"] or (None, f"be one of {', '.join(map(repr, choices))}")
        text = value if isinstance(value, str) else ""
        return None if (re.fullmatch(pattern, text) if pattern else text in choices) else rule
    if kind is bool:
        return None if isinstance(value, bool) else "be True or False"
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if kind is int:
        is_whole = is_number and (isinstance(value, Integral) or float(value).is_integer())
        if is_whole and low <= value <= high:
            return None
        rule = f"a whole number >= {low}" if high == MAX_INT else f"a whole number from {low} to {high}"
    else:
        strict = about["strict"]
        if is_number and (low < value < high if strict else low <= value <= high):
            return None
        rule = f"{'strictly ' * strict}between {low} and {high:g}"
    return f"be {'None or ' * is_optional}{rule}"


def _check_parts(value: Any) -> tuple[str | None, Any]:
    """Return the rule that ``parts`` breaks or None, and the parts in order."""
    names = (value,) if isinstance(value, str) else value
    is_list = isinstance(names, list | tuple | set | frozenset) and len(names) > 0
    if not is_list or not set(names) <= set(PARTS):
        return f"be one or more of {', '.join(map(repr, PARTS))}", value
    return None, tuple(name for name in PARTS if name in names)


def check_weights(value: Any) -> tuple[str | None, Any]:
    """Return the rule that ``weights`` breaks or None, and the weights as plain numbers."""
    if value is None:
        return None, None
    rule = f"map some of {', '.join(map(repr, PARTS))} to numbers >= 0, not all of them 0"
    if not isinstance(value, Mapping) or not set(value) <= set(PARTS):
        return rule, value
    is_number = [isinstance(each, Real) and not isinstance(each, bool) for each in value.values()]
    if not all(is_number) or not all(0 <= each < 1e6 for each in value.values()):
        return rule, value
    if len(value) == len(PARTS) and not any(value.values()):
        return rule, value
    return None, {name: float(value[name]) for name in PARTS if name in value}


_CHECKS = {"parts": _check_parts, "weights": check_weights}
