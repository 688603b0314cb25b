"""Networks of the Stanford collection: ego-Facebook, ego-Twitter and MUSAE's Twitch."""

import csv
import gzip
import io
import json
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from spinegraph.errors import GraphFormatError
from spinegraph.graph.originals.layout import (
    Arrays,
    field,
    pack,
    positions_of,
    tar_member,
    whole_numbers,
    zip_member,
)

_TWITCH_FEATURES = 3170  # shared by all countries


def convert_facebook(archive: Path, ego: int) -> Arrays:
    """Convert one ego network of ``facebook.tar.gz``: friends of ``ego``, their profiles and circles.

    Examples
    --------
    >>> convert_facebook(Path("facebook.tar.gz"), 686)   # doctest: +SKIP
    {'edges': ...}
    """
    text = {
        kind: tar_member(archive, f"facebook/{ego}.{kind}")
        for kind in ("edges", "feat", "circles", "featnames")
    }
    place = f"{archive}: {ego}"
    names = [line.split(" ", 1)[-1] for line in text["featnames"].decode().splitlines()]
    table = whole_numbers(text["feat"], f"{place}.feat", 1 + len(names))
    table = table[np.argsort(table[:, 0], kind="stable")]
    ids = table[:, 0]
    edges = positions_of(ids, whole_numbers(text["edges"], f"{place}.edges", 2), f"{place}.edges")
    circles = [line.split() for line in text["circles"].decode().splitlines() if line.split()]
    labels = np.zeros((len(ids), len(circles)), dtype=np.uint8)
    for column, (_, *members) in enumerate(circles):
        labels[np.isin(ids, np.array(members, dtype=np.int64)), column] = 1
    return pack(
        edges,
        len(ids),
        sp.csr_array(table[:, 1:]),
        labels=labels,
        node_ids=ids,
        feature_names=np.array(names),
        circle_names=np.array([circle[0] for circle in circles]),
    )


def convert_twitter(path: Path) -> Arrays:
    r"""Convert ``twitter_combined.txt.gz``: who follows whom, directions dropped.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "edges.gz").write_bytes(gzip.compress(b"90 12\n12 33\n"))
    ...     convert_twitter(Path(folder) / "edges.gz")["node_ids"].tolist()
    [12, 33, 90]
    """
    try:
        text = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as fault:
        raise GraphFormatError(
            f"{path}: not a readable gzip file ({fault}); delete it and load again"
        ) from fault
    listed = whole_numbers(text, str(path), 2)
    ids, edges = np.unique(listed, return_inverse=True)
    return pack(edges.reshape(-1, 2), len(ids), node_ids=ids)


def convert_twitch(archive: Path, country: str) -> Arrays:
    """Convert one country of ``twitch.zip``: friendships, games as content, mature language as label.

    Examples
    --------
    >>> convert_twitch(Path("twitch.zip"), "ENGB")   # doctest: +SKIP
    {'edges': ...}
    """
    stem = f"twitch/{country}/musae_{country}"
    rows = list(csv.DictReader(io.StringIO(zip_member(archive, f"{stem}_target.csv").decode())))
    place, n = f"{archive}: {stem}", len(rows)
    try:
        order = np.argsort([int(row["new_id"]) for row in rows])
        users = [rows[number] for number in order]
        numbers = {key: np.array([int(user[key]) for user in users]) for key in ("new_id", "days", "views")}
        marks = {
            key: np.array([user[key] == "True" for user in users], dtype=np.int64)
            for key in ("mature", "partner")
        }
        games = json.loads(zip_member(archive, f"{stem}_features.json"))
        listed = [
            np.array(field(games, str(user), f"{stem}_features.json"), dtype=np.int64) for user in range(n)
        ]
        pairs = list(csv.reader(io.StringIO(zip_member(archive, f"{stem}_edges.csv").decode())))[1:]
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    except (KeyError, TypeError, ValueError) as fault:
        raise GraphFormatError(f"{place}: the tables are not those of the MUSAE data ({fault!r})") from fault
    if not np.array_equal(numbers["new_id"], np.arange(n)):
        raise GraphFormatError(f"{place}_target.csv: new_id must number the users 0..{n - 1}")
    columns = np.concatenate(listed) if listed else np.zeros(0, np.int64)
    if columns.size and not (columns.min() >= 0 and columns.max() < _TWITCH_FEATURES):
        raise GraphFormatError(f"{place}_features.json: features must lie in 0..{_TWITCH_FEATURES - 1}")
    user = np.repeat(np.arange(n), [len(own) for own in listed])
    content = sp.csr_array((np.ones(len(user), np.float32), (user, columns)), shape=(n, _TWITCH_FEATURES))
    content.data[:] = 1.0
    return pack(
        edges,
        n,
        content,
        labels=marks["mature"],
        partner=marks["partner"],
        views=numbers["views"],
        days=numbers["days"],
    )
