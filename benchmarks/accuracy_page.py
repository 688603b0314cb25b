"""Writes the tables of ``docs/study.md`` from the stored cells of ``benchmarks.accuracy``.

Run with ``python -m benchmarks.accuracy_page``; the lines between the two marks are written anew.
"""

from pathlib import Path

import numpy as np
from benchmarks.accuracy import TABLE_2, Cells, values_of
from benchmarks.protocols import ITEMS

PAGE = Path(__file__).parents[1] / "docs" / "study.md"
FIRST, LAST = (
    "<!-- accuracy tables, written by benchmarks.accuracy_page -->",
    "<!-- end of accuracy tables -->",
)
CONTROLS = ("T F", "PCA of T F", "raw features")
LINES = (  # what is printed, item, case, measure, factor, digits
    ("Cora, public split", "transductive", "cora", "accuracy", 100, 2),
    ("Citeseer, public split", "transductive", "citeseer", "accuracy", 100, 2),
    ("Pubmed, public split", "transductive", "pubmed", "accuracy", 100, 2),
    ("airports Brazil, 100 splits", "roles", "airports_brazil", "micro-F1", 100, 1),
    ("airports Europe, 100 splits", "roles", "airports_europe", "micro-F1", 100, 1),
    ("Twitch, fitted on ES, PTBR, RU; AUC on ENGB", "across", "twitch_ENGB", "AUC", 100, 1),
    ("FB-686 mirrored, equal features: largest Pm over mean Pa", *("mirror", "equal"), None, 1, 0),
    ("the same, features shuffled: E[Pa]/E[Pm]", "mirror", "shuffled", "Pa/Pm", 1, 2),
    ("the same, perturbed, s = 0.5", "mirror", "perturbed", "Pa/Pm", 1, 2),
    ("Pearson with structural distance, Cora", "correlation", "cora", "Pearson", 1, 3),
)
NAMES = {"cora": "Cora", "citeseer": "Citeseer", "pubmed": "Pubmed"}


class Row:
    """The values of one row of one item, all seeds together."""

    def __init__(self, there, item, case, row, measure):
        found = values_of(there, item, case, row, measure)
        self.values = np.concatenate(list(found.values())) if found else np.empty(0)
        self.seeds = len(found)

    def mean(self, factor, digits):
        """Return the mean, printed."""
        if not len(self.values):
            return ""
        if digits == 0:
            return "exact" if self.values.max() == 0 else f"{self.values.mean():.0e}".replace("e-0", "e-")
        mean = self.values.mean()
        return f"{factor * mean:.{digits}f}" if np.isfinite(mean) else "exact"

    def spread(self, factor, digits):
        """Return mean and deviation, printed."""
        if digits == 0 or len(self.values) < 2:
            return self.mean(factor, digits)
        return f"{self.mean(factor, digits)} ± {factor * np.std(self.values, ddof=1):.{digits}f}"


def first_table(there):
    """Return the lines of the table of all items but the inductive one."""
    yield "| item | SPINE | T F | PCA of T F | raw features | other | seeds |"
    yield "|---|--:|--:|--:|--:|---|--:|"
    for title, item, case, measure, factor, digits in LINES:
        measure = measure or "largest Pm over mean Pa"
        spine = Row(there, item, case, "SPINE", measure)
        cells = [spine.spread(factor, digits)]
        cells += [Row(there, item, case, row, measure).mean(factor, digits) for row in CONTROLS]
        others = [row for row in ITEMS[item][2] if row not in ("SPINE", *CONTROLS)]
        said = [(row, Row(there, item, case, row, measure).mean(factor, digits)) for row in others]
        rest = ", ".join(f"{row} {mean}" for row, mean in said if mean)
        yield f"| {title} | {' | '.join(cells)} | {rest} | {spine.seeds} |"


def second_table(there):
    """Return the lines of Table 2, the stricter variant in brackets."""
    yield "| item | SPINE | paper | T F | PCA of T F | raw features | SPINE less T F | less PCA | removals |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for name, paper in TABLE_2.items():
        for rate, floor in zip((20, 40, 60, 80), paper, strict=True):
            case = f"{name} {rate}"
            spine = Row(there, "inductive", case, "SPINE", "accuracy")
            if not spine.seeds:
                continue
            cells = []
            for row in ("SPINE", *CONTROLS):
                plain, strict = (Row(there, "inductive", case, row, key) for key in ("accuracy", "strict"))
                shown = plain.spread(100, 1) if row == "SPINE" else plain.mean(100, 1)
                cells.append(f"{shown} ({strict.mean(100, 1)})")
            cells.insert(1, f"{100 * floor:.1f}")
            cells += [difference(there, case, row) for row in CONTROLS[:2]]
            yield f"| {NAMES[name]}, {rate} % removed | {' | '.join(cells)} | {spine.seeds} |"


def difference(there, case, row):
    """Return SPINE less a row, paired over removals, with its standard error."""
    ours, theirs = (values_of(there, "inductive", case, name, "accuracy") for name in ("SPINE", row))
    found = 100 * np.array([ours[seed][0] - theirs[seed][0] for seed in ours if seed in theirs])
    error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
    return f"{found.mean():+.2f} ± {error:.2f}"


def main():
    """Write the tables into the page."""
    there = Cells({}).read()
    text = PAGE.read_text()
    before, _, rest = text.partition(FIRST)
    if not rest:
        raise SystemExit(f"{PAGE.name} must hold the line {FIRST}")
    _, _, after = rest.partition(LAST)
    removed = (
        "Nodes removed at random, fitted without them, embedded afterwards (Table 2); in brackets the\n"
        "stricter variant in which a removed node sees only nodes that were there; differences are paired,\n"
        "with their standard error:"
    )
    tables = "\n".join([*first_table(there), "", removed, "", *second_table(there)])
    PAGE.write_text(f"{before}{FIRST}\n{tables}\n{LAST}{after}")


if __name__ == "__main__":
    main()
