"""SPINE beside what people use today: seconds, memory, accuracy, and whether an unseen node gets a vector.

Run with ``python -m benchmarks.peers``; prints a table and writes ``benchmarks/results/peers.json``,
``docs/peers.md`` and ``docs/figures/peers.png`` and ``.svg``. Every peer has an environment of its own, made
on the first run under ``.peers/`` by pip from pinned versions.

- One process for each peer and network, held to two cores and two threads. It imports the peer, fits a made
  network of 300 nodes (which compiles what is compiled once, and serves the trial with an unseen node), reads
  the network, makes the peer's own graph object, and then fits. ``seconds`` are those of the fit alone, from
  that object to vectors in memory; import, warming up and loading are kept beside it.
- All make vectors of 200 numbers with documented defaults; what is not a default is said in the module of
  the peer in ``benchmarks/peer_runners``.
- GraphSAGE is timed up to the epoch with the best validation score, the scoring itself not counted. A network
  without features gets PyG's LocalDegreeProfile.
- Accuracy is that of one probe for all: one-vs-rest logistic regression, C chosen on validation nodes. Cora
  has its public split; amazon_photo has none and gets 20 nodes a class to train, 500 to validate and the
  rest to test, by seed 0.
- Memory is the highest resident size of the process, libraries and data included.
- A fit that has not ended after ``--limit`` seconds is stopped, and its row says so.
- Unseen: the peer is fitted without the last of the 300 nodes and then asked for its vector.
"""

import argparse
import json
import signal
import sys
import time
from itertools import product
from pathlib import Path

from benchmarks.machine import describe
from benchmarks.peers_cells import NETWORKS, PEERS, measure

RESULTS = Path(__file__).parent / "results" / "peers.json"


def merged(before, new):
    """Return all rows in order, a new one in the place of an old one of the same cell."""
    alike = [row for row in before if (row["dim"], row["threads"]) == (new["dim"], new["threads"])]
    cells = {_cell(row): row for row in [*alike, new]}
    order = {
        (peer.name, network): (NETWORKS.index(network), place)
        for place, peer in enumerate(PEERS)
        for network in NETWORKS
    }
    known = [row for row in cells.values() if (row["peer"], row["network"]) in order]
    return sorted(known, key=lambda row: (*order[row["peer"], row["network"]], row["seed"]))


def _cell(row):
    return row["peer"], row["network"], row["seed"]


def wanted(given, rows):
    """Return the cells that are asked for: peer, network and seed."""
    there = {_cell(row) for row in rows} if given.missing else set()
    chosen = [peer for peer in PEERS if peer.name in given.peers]
    every = product(given.networks, chosen, range(given.seeds))
    return [(peer, network, seed) for network, peer, seed in every if (peer.name, network, seed) not in there]


def show(row):
    """Print one row."""
    cells = [f"{row['network']:<13}{row['peer']:<27}"]
    if row["status"] == "ok":
        accuracy = f"{row['accuracy']:.4f}" if "accuracy" in row else ""
        start = row["import_seconds"] + row["warm_seconds"]
        cells += [f"{row['seconds']:>8.2f} s", f"{row['peak_mb']:>7,.0f} MB", f"{accuracy:>7}"]
        cells += [f"  load {row['load_seconds']:.2f} s, start {start:.1f} s, unseen: {row['unseen']['can']}"]
    else:
        cells.append(f"{row['status']}: {row['reason']}")
    print(*cells, flush=True)


def main():
    """Measure what is asked for, and write table, page and figure of all there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = [peer.name for peer in PEERS]
    parser.add_argument(
        "--peers", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--limit", type=float, default=300, help="seconds for one fit")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--missing", action="store_true", help="only cells without a result")
    parser.add_argument("--draw", action="store_true", help="measure nothing; page and figure from the JSON")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and with it the peer that runs
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": []}
    started = time.perf_counter()
    if not given.draw:
        settings = {"dim": given.dim, "threads": given.threads, "limit": given.limit}
        found |= {"machine": describe(), "settings": {**settings, "about": __doc__.strip()}}
        for peer, network, seed in wanted(given, found["rows"]):
            row = measure(peer, network, settings, seed)
            show(row)
            found["rows"] = merged(found["rows"], row)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")  # a run that is stopped keeps what it has
        print(f"{time.perf_counter() - started:.0f} s in all")
    from benchmarks.peers_figure import draw
    from benchmarks.peers_page import write_page

    write_page(found)
    draw(found)


if __name__ == "__main__":
    main()
