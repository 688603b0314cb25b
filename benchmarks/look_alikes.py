"""Look-alikes: how long a question takes, how many of the true nearest are found, how true a map is.

Run with ``python -m benchmarks.look_alikes [--networks cora pubmed ego_twitter]``; writes
``benchmarks/results/look_alikes.json``, network by network, and the tables of docs/explain.md and
docs/report.md.

- Vectors are SPINE's by default settings, 200 dimensions; a network without features reads structure alone.
- A question: the ten most like a node by vector (cosine) and by role (DTW of profiles), and why the
  nearest one is alike, in all its words; the median over nodes drawn at random, everything built before.
- Recall: the share of the true ten nearest that search finds where it does not compare with everybody.
- Map: how many of a node's ten nearest vectors are among its ten nearest on the map, over 1,500 nodes.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from benchmarks.machine import describe

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "look_alikes.json"
QUESTIONS, NEAREST, PLACED = 60, 10, 1_500
EXACT = 20_000  # up to so many nodes search compares with everybody


def measure(name, methods):
    """Return all figures of one network."""
    import spinegraph as sg
    from spinegraph.analysis.search import Search

    graph = sg.datasets.load(name).graph
    model = sg.SPINE(seed=0).fit(graph)
    vectors = model.embeddings_
    started = time.perf_counter()
    search = Search(vectors)
    found = {"nodes": len(graph), "build_seconds": round(time.perf_counter() - started, 2)}
    found |= questions(graph, model, search)
    if len(graph) > EXACT:
        found["recall_vector"] = search.recall(NEAREST)
    return found | {"map": {method: placed(vectors.vectors, method) for method in methods}}


def questions(graph, model, search):
    """Return median milliseconds of each kind of question."""
    from spinegraph.analysis.explain import explain

    def reasons(node):
        other = search.similar(node, 1)[0].name
        return explain(graph, model.generator_, node, other, embeddings=search).words

    asked = graph.names[np.random.default_rng(0).choice(len(graph), QUESTIONS, replace=False)]
    kinds = {"vector": search.similar, "explain": reasons}
    found = {}
    for kind, ask in kinds.items():
        ask(asked[0])
        found[f"{kind}_ms"] = round(1000 * float(np.median([_seconds(ask, node) for node in asked])), 2)
    return found


def _seconds(ask, *arguments):
    started = time.perf_counter()
    ask(*arguments)
    return time.perf_counter() - started


def placed(vectors, method):
    """Return how many neighbours a map keeps, and its seconds of a processor."""
    from spinegraph.analysis.layout import layout

    started = time.process_time()
    places = layout(vectors, method=method, seed=0)
    spent = time.process_time() - started
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    chosen = np.random.default_rng(1).choice(len(vectors), min(PLACED, len(vectors)), replace=False)
    kept = []
    for node in chosen:
        far = -(unit @ unit[node]), ((places - places[node]) ** 2).sum(axis=1)
        near = []
        for distance in far:
            distance[node] = np.inf
            near.append(np.argpartition(distance, NEAREST)[:NEAREST])
        kept.append(len(np.intersect1d(*near)) / NEAREST)
    return {"kept": round(float(np.mean(kept)), 3), "processor_seconds": round(spent, 1)}


def question_table(found):
    """Return the table of docs/explain.md."""
    yield "| network | nodes | by vector | a reason | true ten found |"
    yield "|---|--:|--:|--:|--:|"
    for name, row in found.items():
        recall = f"{row['recall_vector']:.1%}" if "recall_vector" in row else "all"
        times = " | ".join(f"{row[f'{kind}_ms']:g} ms" for kind in ("vector", "explain"))
        yield f"| {name} | {row['nodes']:,} | {times} | {recall} |"


def map_table(found):
    """Return the table of docs/report.md."""
    rows = {name: row for name, row in found.items() if row["map"]}
    titles = [f"{name}, {row['nodes']:,}" for name, row in rows.items()]
    yield f"| | {' | '.join(titles)} |"
    yield f"|---|{'--:|' * len(rows)}"
    for method in dict.fromkeys(method for row in rows.values() for method in row["map"]):
        cells = [
            f"{row['map'][method]['kept']:.0%}, {row['map'][method]['processor_seconds']:.0f} s"
            if method in row["map"]
            else ""
            for row in rows.values()
        ]
        yield f"| `{method}` | {' | '.join(cells)} |"


def write_pages(found):
    """Put both tables into their pages, between marks."""
    for page, mark, lines in (
        ("explain.md", "look-alike figures", question_table(found)),
        ("report.md", "map figures", map_table(found)),
    ):
        path = ROOT / "docs" / page
        before, _, rest = path.read_text().partition(f"<!-- {mark} -->\n")
        _, _, after = rest.partition(f"<!-- end of {mark} -->")
        table = "".join(f"{line}\n" for line in lines)
        path.write_text(f"{before}<!-- {mark} -->\n{table}<!-- end of {mark} -->{after}")


def main():
    """Measure the chosen networks and rewrite file and pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--networks", nargs="*", default=["cora", "pubmed", "ego_twitter"])
    parser.add_argument("--methods", nargs="*", default=["pca", "tsne", "landmarks", "umap"])
    arguments = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"networks": {}}
    for name in arguments.networks:
        print(f"{name} ...", flush=True)
        stored["networks"][name] = measure(name, arguments.methods) | {"machine": describe("usearch")}
        RESULTS.write_text(json.dumps(stored, indent=2) + "\n")
    write_pages(stored["networks"])
    print("\n".join([*question_table(stored["networks"]), "", *map_table(stored["networks"])]))


if __name__ == "__main__":
    main()
