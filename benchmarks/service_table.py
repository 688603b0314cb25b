"""The speed table of ``docs/service.md``, written from what was measured."""

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "service.md"
_BEGIN, _END = "<!-- speed -->\n", "<!-- end of speed -->"
_NAMES = {"cora": "Cora, 2,708 nodes", "made": "made, 100,000 nodes"}
_RUNS = {
    "look-ups at 1000/s": "look-ups at 1,000 a second",
    "look-ups at most": "look-ups, eight connections",
    "inserts at 100/s, map being drawn": "inserts at 100 a second, while the first map is drawn",
    "inserts at 100/s": "inserts at 100 a second",
    "inserts at most": "inserts, eight connections",
    "look-ups at 500/s": "look-ups at 500 a second, after {inserted:,} inserts",
}


def table(results):
    """Return the table, and a line about memory, as Markdown.

    Examples
    --------
    >>> print(table({}))
    | | answered a second | median | 99 % within | processor |
    |---|--:|--:|--:|--:|
    """
    lines = ["| | answered a second | median | 99 % within | processor |", "|---|--:|--:|--:|--:|"]
    for name, title in _NAMES.items():
        found = results.get(name)
        if found is None:
            continue
        ready, size = found["seconds_to_ready"], found["resident_mb"]
        lines.append(f"| **{title}** (ready after {ready:.0f} s, {size:.0f} MB) | | | | |")
        for run, what in _RUNS.items():
            if one := found.get(run):
                figures = f"{one['median_ms']:.1f} ms | {one['p99_ms']:.1f} ms | {one['processor_ms']:.2f} ms"
                what = what.format(inserted=found.get("inserted", 0))
                lines.append(f"| {what} | {one['per_second']:,.0f} | {figures} |")
    if found := results.get("memory"):
        sizes = found["resident_mb"]
        lines += [
            "",
            f"Memory on Cora over {found['requests']:,} requests: {sizes[len(sizes) // 5]:.0f} MB after a",
            f"fifth of them, {sizes[-1]:.0f} MB at the end, at most {max(sizes):.0f} MB; a line through the",
            f"last four fifths rises by {found['slope_mb']:.1f} MB in 100,000 requests.",
        ]
    if found := results.get("near"):
        lines += [
            "",
            f"After {found['inserted']} inserts of nodes with three edges, one by one on Cora: a change",
            f"computed {found['refreshed_each']:.0f} vectors anew on average; the cosine to those that",
            f"`transform` of the final graph gives is {found['cosine_median']:.6f} at the median,",
            f"{found['cosine_hundredth']:.4f} at the lowest hundredth, {found['cosine_least']:.4f} at worst.",
        ]
    machines = {name: found["machine"] for name, found in results.items() if "machine" in found}
    if machines:
        loads = ", ".join(
            f"{about['load_average_at_start']} before {name}" for name, about in machines.items()
        )
        cores = next(iter(machines.values()))["cores"]
        lines += ["", f"{cores} cores for the service and for who asks; load average {loads}."]
    return "\n".join(lines)


def write_table(results, page):
    """Put the table between its marks in a page."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise SystemExit(f"{page}: the marks {_BEGIN.strip()} and {_END} are not there")
    page.write_text(f"{before}{_BEGIN}\n{table(results)}\n\n{_END}{after}", encoding="utf-8")
