"""How smoothly the explorer moves its map: frames a second in Chromium, without a graphics card.

``python -m benchmarks.explorer`` prints a table, writes ``benchmarks/results/explorer.json`` and the table in
``docs/explorer.md``; it needs ``chromium`` on the path and ``pip install playwright``.

The page is the explorer as the service sends it; its map is of made points, and no service runs beside it.
For some seconds the map is moved by a step a frame, as a hand would, and every frame is counted; then single
pieces of work are timed. Headless Chromium shows at most 60 frames a second. Without a graphics card the
explorer draws pixel by pixel by the processor, since WebGL in software is slower.
"""

import argparse
import json
import mimetypes
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
from benchmarks.machine import describe

RESULTS = Path(__file__).parent / "results" / "explorer.json"
PAGE = Path(__file__).parents[1] / "docs" / "explorer.md"
_BEGIN, _END = "<!-- frames -->\n", "<!-- end of frames -->"
_SITE, _FILES = "http://explorer.invalid", Path(str(files("spinegraph.apps"))) / "explorer"
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
    }


def measure(chromium, count, wide, high, seconds):
    """Return frames a second and single times in milliseconds, of one window."""
    page, body = chromium.new_page(viewport={"width": wide, "height": high}), json.dumps(made_map(count))

    def answer(route):
        path = route.request.url.removeprefix(_SITE).partition("?")[0]
        file = _FILES / ("index.html" if path == "/" else path[1:])
        if path == "/v1/map":
            route.fulfill(body=body, content_type="application/json")
        elif file.is_file():
            route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0])
        else:
            route.fulfill(status=404, body="")

    page.route("**/*", answer)
    page.goto(_SITE)
    page.wait_for_selector("body[data-drawn=yes]")
    found = page.evaluate(_MEASURE, seconds)
    page.close()
    frames = np.array(found["frames"])
    return {
        "points": count,
        "window": [wide, high],
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
        "| points | window | frames a second | 99 % of frames within | one drawing | finding a point |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for one in results["runs"]:
        lines.append(
            f"| {one['points']:,} | {one['window'][0]} × {one['window'][1]} | "
            f"{one['frames_per_second']:.0f} | {one['slowest_hundredth_ms']:.0f} ms | "
            f"{one['draw_ms']:.1f} ms | {one['pointer_ms']:.2f} ms |"
        )
    about = results["machine"]
    lines += ["", f"{about['cores']} cores, no graphics card; load average {about['load_average_at_start']}."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, nargs="*", default=[2_708, 10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=5, help="of each window")
    parser.add_argument("--table", action="store_true", help="only write the table from the results")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if not given.table:
        from playwright.sync_api import sync_playwright

        results = {"machine": describe("playwright"), "runs": []}
        with sync_playwright() as play:
            chromium = play.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
            results["browser"] = chromium.version
            for count in given.points:
                for wide, high in ((1280, 800), (1920, 1080)):
                    results["runs"].append(measure(chromium, count, wide, high, given.seconds))
                    print(results["runs"][-1], flush=True)
            chromium.close()
        given.results.write_text(json.dumps(results, indent=1) + "\n")
    if given.results == RESULTS:
        text = PAGE.read_text(encoding="utf-8")
        (before, _, rest), written = text.partition(_BEGIN), table(json.loads(RESULTS.read_text()))
        PAGE.write_text(f"{before}{_BEGIN}\n{written}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
