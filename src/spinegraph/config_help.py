"""What each setting changes and when to touch it: the one source of option help and docs/parameters.md."""

from typing import NamedTuple


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
        "training_workers": Advice(
            "with the Ray engine, workers that share each training step; None trains where `fit` was called",
            "seldom: a step is too short to share, see [On a cluster](cluster.md)",
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
