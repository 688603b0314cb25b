"""How soon the explorer shows its map and how smoothly it moves it, in Chromium without a graphics card.

``python -m benchmarks.explorer`` prints a table, writes ``benchmarks/results/explorer.json`` and the table in
``docs/explorer.md``; it needs ``chromium`` on the path and ``pip install playwright``. ``--beside COMMIT``
measures the page of another commit of this clone in turn; by default that of version 0.1.0.

The page is the explorer as the service sends it; its map is of made points, and no service runs beside it.
The first picture counts from the start of the navigation to the first map on the screen. For some seconds the
map is moved by a step a frame, as a hand would, and every frame is counted; then single pieces of work are
timed. Headless Chromium shows at most 60 frames a second. Without a graphics card the explorer draws pixel by
pixel by the processor, since WebGL in software is slower.
"""

import argparse
import json
import mimetypes
import shutil
import subprocess
import tarfile
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
from benchmarks.machine import describe

from spinegraph.analysis.plots import COLORS

RESULTS = Path(__file__).parent / "results" / "explorer.json"
PAGE = Path(__file__).parents[1] / "docs" / "explorer.md"
_BEGIN, _END = "<!-- frames -->\n", "<!-- end of frames -->"
_SITE, _INSIDE = "http://explorer.invalid", "src/spinegraph/apps/explorer"
_FILES = Path(str(files("spinegraph.apps"))) / "explorer"
_RELEASED = "396e0bd"  # version 0.1.0
_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_MEASURE = """async (seconds) => {
  const { map } = await import("/app.js");
  const next = () => new Promise((done) => requestAnimationFrame(done));
  for (let at = 0; at < 10; at += 1) { map.view.move(2, 1); map.redraw(); await next(); }
  const frames = [];
  const drawn = map.frames;
  const started = await next();
  for (let before = started, now = started; now - started < 1000 * seconds; before = now) {
    const turn = ((now - started) / 1000) * Math.PI;
    map.view.move(4 * Math.cos(turn), 4 * Math.sin(turn));
    map.redraw();
    now = await next();
    frames.push(now - before);
  }
  const shown = map.frames - drawn;
  const timed = (times, work) => {
    const begun = performance.now();
    for (let at = 0; at < times; at += 1) work(at);
    return (performance.now() - begun) / times;
  };
  return {
    frames, shown, by: map.points.constructor.name,
    draw: timed(20, () => { map.view.move(3, 1); map.draw(); }),
    pointer: timed(500, (at) => map.hovered([200 + at, 300])),
    colors: timed(5, () => map.recolor()),
  };
}"""


def made_map(count):
    """Return what the service would tell of a network of so many nodes, places in clouds of unlike size."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 6, count)
    places = rng.normal(size=(6, 2))[group] * 2 + rng.normal(size=(count, 2)) * (0.2 + 0.15 * group[:, None])
    return {
        "version": 0,
        "method": "t-SNE",
        "names": list(range(count)),
        "x": places[:, 0].round(4).tolist(),
        "y": places[:, 1].round(4).tolist(),
        "degree": rng.integers(1, 99, count).tolist(),
        "role": group.tolist(),
        "titles": [f"role {number}" for number in range(6)],
        "descriptions": [""] * 6,
        "label": None,
        "labels": [],
        "parts": [],
        "groups": {},
        "columns": [],
        "colors": list(COLORS),
    }


def page_of(commit, folder):
    """Return the explorer's files of a commit, in a folder."""
    archive = subprocess.run(["git", "archive", commit, _INSIDE], capture_output=True, check=True)
    (folder / "page.tar").write_bytes(archive.stdout)
    with tarfile.open(folder / "page.tar") as opened:
        opened.extractall(folder, filter="data")
    return folder / _INSIDE


def measure(chromium, page_files, count, wide, high, seconds):
    """Return frames a second and single times in milliseconds, of one window."""
    page, body = chromium.new_page(viewport={"width": wide, "height": high}), json.dumps(made_map(count))

    def answer(route):
        path = route.request.url.removeprefix(_SITE).partition("?")[0]
        file = page_files / ("index.html" if path == "/" else path[1:])
        if path == "/v1/map":
            route.fulfill(body=body, content_type="application/json")
        elif file.is_file():
            route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0])
        else:
            route.fulfill(status=404, body="")

    page.route("**/*", answer)
    page.goto(_SITE)
    page.wait_for_selector("body[data-drawn=yes]", state="attached")
    first = page.evaluate(
        """() => import("/app.js").then(({ map }) => new Promise((done) => {
          const look = () => (map.frames ? done(performance.now()) : requestAnimationFrame(look));
          look();
        }))"""
    )
    found = page.evaluate(_MEASURE, seconds)
    page.close()
    frames = np.array(found["frames"])
    return {
        "points": count,
        "window": [wide, high],
        "first_picture_ms": round(first),
        "drawn_by": {"GlPoints": "WebGL in software", "FlatPoints": "own pixels"}[found["by"]],
        "frames_per_second": round(float(found["shown"] / frames.sum() * 1000), 1),
        "slowest_hundredth_ms": round(float(np.percentile(frames, 99)), 1),
        "draw_ms": round(found["draw"], 2),
        "pointer_ms": round(found["pointer"], 3),
        "recolor_ms": round(found["colors"], 1),
    }


def table(results):
    """Return the results as Markdown."""
    lines = [
        "| points | page | first picture | frames a second | 99 % of frames in | one drawing | new colours |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    for one in results["runs"]:
        lines.append(
            f"| {one['points']:,} | {one['page']} | {one['first_picture_ms'] / 1000:.1f} s | "
            f"{one['frames_per_second']:.0f} | {one['slowest_hundredth_ms']:.0f} ms | "
            f"{one['draw_ms']:.1f} ms | {one['recolor_ms']:.0f} ms |"
        )
    about = results["machine"]
    lines += [
        "",
        f"Window 1280 × 800, {about['cores']} cores, no graphics card; load average "
        f"{about['load_average_at_start']}: the machine was busy, so compare rows, not machines.",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, nargs="*", default=[3_000, 20_000, 100_000])
    parser.add_argument("--seconds", type=float, default=5, help="of each window")
    parser.add_argument("--beside", default=_RELEASED, help="a commit of this clone")
    parser.add_argument("--table", action="store_true", help="only write the table from the results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if not given.table:
        from playwright.sync_api import sync_playwright

        results = {"machine": describe("playwright"), "runs": []}
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
            pages = {
                "0.1.0" if given.beside == _RELEASED else given.beside: page_of(given.beside, Path(folder))
            }
            pages["now"] = _FILES
            chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
            results["browser"] = chromium.version
            for count in given.points:
                for name, page_files in pages.items():
                    found = measure(chromium, page_files, count, 1280, 800, given.seconds)
                    results["runs"].append({"page": name, **found})
                    print(results["runs"][-1], flush=True)
            chromium.close()
        given.results.write_text(json.dumps(results, indent=1) + "\n")
    if given.results == RESULTS:
        text = PAGE.read_text(encoding="utf-8")
        (before, _, rest), written = text.partition(_BEGIN), table(json.loads(RESULTS.read_text()))
        PAGE.write_text(f"{before}{_BEGIN}\n{written}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
