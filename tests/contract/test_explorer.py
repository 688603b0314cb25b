"""The explorer in a real browser, against a real service: seen, clicked, typed into, never leaving it."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import browser
import spinegraph as sg
from running_service import Running, small_graph, small_model
from spinegraph.graph.datasets import load
from spinegraph.structure.similarity import pair_distances

HOSTILE = "<img src=x onerror='window.hacked = 1'><script>window.hacked = 2</script>"
ROOT = Path(sg.__file__).parent / "apps" / "explorer"


@pytest.fixture(scope="module")
def chromium():
    with browser.started() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A service whose first node, first column and first label are markup."""
    graph = small_graph()
    names = [HOSTILE, *graph.names[1:].tolist()]
    graph = graph.relabel(names).with_features(graph.features, [HOSTILE, *graph.feature_names[1:]])
    folder = tmp_path_factory.mktemp("explorer")
    labels = [f'"{name}",{"odd" if place % 2 else HOSTILE}' for place, name in enumerate(names)]
    (folder / "labels.csv").write_text("\n".join(["node,label", *labels]))
    arguments = ["--labels", str(folder / "labels.csv")]
    with Running(small_model(folder / "model", graph), folder / "store", arguments) as running:
        running.wait_for_roles("n3")
        yield running


def opened(chromium, running, *, path="/", wide=1280, high=800, **options):
    """Open the page and return it with the list of everything that goes wrong in it."""
    page = chromium.new_page(viewport={"width": wide, "height": high}, **options)
    page.set_default_timeout(20_000)
    page.faults = []
    page.on("console", lambda said: said.type == "error" and page.faults.append(said.text))
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith(running.url) or page.faults.append(asked.url))
    page.goto(running.url + path, wait_until="domcontentloaded")
    return page


@pytest.fixture
def page(chromium, network):
    shown = opened(chromium, network)
    shown.wait_for_selector("body[data-drawn=yes]")
    yield shown
    assert shown.faults == []
    assert shown.evaluate("window.hacked") is None
    shown.close()


def find(page, name):
    page.keyboard.press("/")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_function("name => document.querySelector('#node h2')?.textContent === name", arg=name)


def test_the_map_shows_every_node_and_says_what_colours_mean(page, network):
    told = network.get("/v1/map")
    assert page.inner_text("#about") == f"90 nodes in {len(told['titles'])} roles"
    assert page.evaluate("import('/app.js').then(({ map }) => map.points.count)") == 90
    counts = [int(text) for text in page.locator("#legend small").all_inner_texts()]
    assert sum(counts) == 90
    assert page.locator("#coloring option").all_inner_texts() == ["role", "label", "number of links"]
    page.select_option("#coloring", "label")
    assert page.locator("#legend span").all_inner_texts()[0].startswith("<img src=x")
    page.locator("#legend button").first.click()
    assert page.locator("#legend button").first.get_attribute("aria-pressed") == "false"
    page.select_option("#coloring", "degree")
    assert page.locator("#legend h2").inner_text() == "Links"


@pytest.mark.parametrize(("wide", "high"), [(1280, 800), (390, 844)])
def test_no_node_lies_under_the_legend(chromium, network, wide, high):
    page = opened(chromium, network, wide=wide, high=high)
    page.wait_for_selector("body[data-drawn=yes]")
    hidden = """async () => {
        const { map } = await import("/app.js");
        const { state } = await import("/state.js");
        const { x, y } = state.network;
        const most = Math.max(...x.map(Math.abs), ...y.map(Math.abs));
        const [wide, high] = [most * map.view.wide, most * map.view.high];
        map.grid = { left: -wide, right: wide, low: -high, high };
        [x[0], y[0]] = [-wide, -high]; // a node in the corner where the legend stands
        map.showAll();
        const box = map.legend.getBoundingClientRect();
        const from = map.above.getBoundingClientRect();
        const all = [...x].map((across, at) => map.view.pixels(across, y[at]));
        const places = all.map(([across, down]) => [across + from.left, down + from.top]);
        const covered = places.filter(([across, down]) => across < box.right && down > box.top);
        const outside = all.filter((at) => !map.view.isSeen(at));
        return [box.width > 0, covered.length, outside.length];
    }"""
    assert page.evaluate(hidden) == [True, 0, 0]
    assert page.faults == []
    page.close()


def test_a_click_on_the_map_chooses_the_node_that_lies_there(page, network):
    told = network.get("/v1/map")
    x, y = np.array(told["x"]), np.array(told["y"])
    box = page.locator("#marks").bounding_box()
    scale = min((box["width"] - 56) / np.ptp(x), (box["height"] - 56) / np.ptp(y))
    across = box["width"] / 2 + (x - (x.min() + x.max()) / 2) * scale
    down = box["height"] / 2 - (y - (y.min() + y.max()) / 2) * scale
    apart = np.hypot(across[:, None] - across, down[:, None] - down) + 1e9 * np.eye(90)
    lone = int(apart.min(axis=1).argmax())  # no other is as near to where it lies
    page.mouse.move(box["x"] + across[lone], box["y"] + down[lone])
    assert page.inner_text("#tip").startswith(told["names"][lone])
    page.mouse.down()
    page.mouse.up()
    assert page.inner_text("#node h2") == told["names"][lone]
    assert page.url.endswith(f"#{told['names'][lone]}")


def test_a_node_is_drawn_beside_its_twins_with_reasons(page, network):
    find(page, "n7")
    page.wait_for_selector(".why li")
    twins = [match["name"] for match in network.get("/v1/nodes/n7/twins", n=5)["matches"]]
    assert len(twins) == 5
    assert "n7" not in twins
    page.wait_for_function("() => document.querySelectorAll('.cards .ego').length === 6")
    shown = page.locator(".twins .card b").all_inner_texts()
    assert shown == ["n7", *[name if len(name) < 25 else f"{name[:23]}…" for name in twins]]
    own = page.locator(".card.own")
    around = network.get("/v1/nodes/n7/neighborhood")
    assert own.locator("circle").count() == len(around["names"])
    assert own.locator("line").count() == len(around["edges"])
    told = network.client.get(f"/v1/nodes/n7/explain/{twins[0]}").json()["words"]
    assert page.locator(".why li").all_inner_texts() == [told[-1], *told[:-1]]
    assert page.locator(".profile .bar").count() == 10
    assert page.locator(".profile .twin-line").count() == 1
    linked = [name for name, hop in zip(around["names"], around["hops"], strict=True) if hop == 1]
    assert page.locator("#node section .chip span").all_inner_texts() == linked
    role = network.get("/v1/nodes/n7/role")
    assert page.inner_text(".role p >> nth=0") == f"{role['title']} — {role['description']}"


def test_another_twin_and_another_kind_of_likeness_can_be_chosen(page, network):
    find(page, "n7")
    page.wait_for_selector(".why li")
    second = page.locator("button.card").nth(1)
    name = second.locator("b").inner_text()
    second.click()
    page.wait_for_function(f"() => document.querySelector('.why h4').textContent.startsWith('Why {name} ')")
    page.click("text=Most alike")
    first = network.get("/v1/nodes/n7/similar", n=1)["matches"][0]["name"]
    page.wait_for_function(
        f"() => document.querySelector('.why h4').textContent === 'Why {first} is like n7'"
    )
    page.click(f"text=Go to {first}")
    assert page.inner_text("#node h2") == first
    page.click("text=Structural twins")  # stays as chosen from node to node


def test_nodes_alike_by_one_part_are_shown_and_explained(page, network):
    find(page, "n7")
    page.wait_for_selector(".why li")
    for part in ("content", "place", "role"):
        page.click(f"text=By {part}")
        first = network.get("/v1/nodes/n7/similar", n=1, by=part)["matches"][0]["name"]
        page.wait_for_function(
            "words => document.querySelector('.why h4').textContent === words", arg=f"Why {first} is like n7"
        )
        told = network.get(f"/v1/nodes/n7/explain/{first}")
        (cosine,) = [one["cosine"] for one in told["parts"] if one["name"] == part]
        assert f"{part} {cosine:.2f}" in page.locator("button.card small").first.inner_text()
        shown = page.locator(".why .parts .note").inner_text()
        assert all(one["name"] in shown for one in told["parts"] if one["share"] > 0.005)
    page.click("text=Structural twins")


def test_names_that_are_markup_are_shown_as_they_are(page):
    page.fill("#find", "<img")
    page.wait_for_selector("[role=option]")
    assert page.inner_text("[role=option] span").startswith("<img src=x onerror=")
    page.keyboard.press("Enter")
    page.wait_for_selector(".why li")
    assert page.inner_text("#node h2") == HOSTILE
    assert page.locator("#panel img").count() == 0


def test_a_node_that_is_not_there_lands_and_nothing_is_stored(page, network):
    before = network.get("/v1/map")["version"]
    page.click("#tab-trial")
    for name in ("n1", "n2"):
        page.fill("#trial-link", name)
        page.locator(f"[role=option]:has-text('{name}')").first.wait_for()
        page.keyboard.press("Enter")
    page.wait_for_selector("#lands")
    page.fill("#trial-feature", "word 11")
    page.keyboard.press("Enter")
    body = {"name": "new node", "edges": ["n1", "n2"], "features": {"word 11": 1}}
    told = network.client.post("/v1/embed?n=8", json=body).json()["nodes"][0]
    best = told["nearest"][0]
    page.wait_for_function(
        "words => document.querySelector('#lands').textContent.startsWith(words)",
        arg=f"It lands near {best['name'][:30]}",
    )
    page.wait_for_function(
        "place => import('/app.js').then(({ map }) => place.every((at, axis) => map.star[axis] === at))",
        arg=told["place"],
    )
    page.locator(".picked .remove").first.click()
    page.wait_for_function("() => document.querySelectorAll('.picked li').length === 2")
    assert network.get("/v1/map")["version"] == before


def test_nodes_are_picked_on_the_map_and_kept_with_the_token(page, network):
    page.click("#tab-trial")
    page.focus("#marks")
    page.keyboard.press("Enter")  # the node at the cross
    page.wait_for_selector("#lands")
    assert page.locator(".picked li").count() == 1
    page.fill("#trial-name", "kept & shown")
    page.click(".keeping summary")
    page.click("#store")
    page.fill("#token", network.token)
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#node h2')?.textContent === 'kept & shown'")
    page.wait_for_selector(".why li")
    page.wait_for_load_state("networkidle")  # nothing is asked about it any more when it goes
    assert page.inner_text("#about").startswith("91 nodes")
    assert network.get("/v1/nodes/kept & shown")["degree"] == 1
    network.client.delete("/v1/nodes/kept & shown")


def test_every_part_is_reached_by_keys_and_shows_its_focus(page):
    find(page, "n3")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_selector(".welcome")
    seen = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(24):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        style = (
            "getComputedStyle(document.activeElement.matches('.segments input') ? "
            "document.activeElement.nextElementSibling : document.activeElement)"
        )
        assert page.evaluate(f"parseFloat({style}.outlineWidth)") >= 2, seen[-1]
    for part in ("skip", "find", "coloring", "marks", "tab-node", "chip"):
        assert part in seen
    page.focus("#tab-node")
    page.keyboard.press("ArrowRight")
    assert page.locator("#trial").is_visible()


def test_the_address_names_the_node(chromium, network):
    page = opened(chromium, network, path="/#n12")
    page.wait_for_selector(".why li")
    assert page.inner_text("#node h2") == "n12"
    assert page.title() == "n12 · spinegraph explorer"
    assert page.faults == []
    page.close()


@pytest.mark.parametrize(("wide", "high"), [(1280, 800), (1920, 1080)])
def test_the_page_fits_its_window_in_both_appearances(chromium, network, wide, high):
    page = opened(chromium, network, path="/#n12", wide=wide, high=high, color_scheme="dark")
    page.wait_for_selector(".why li")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.check("#theme input[value=light]", force=True)
    assert page.evaluate(ground) != dark
    page.reload()
    page.wait_for_selector(".why li")
    assert page.evaluate(ground) != dark  # kept
    assert page.evaluate("document.documentElement.scrollWidth") == wide
    assert page.evaluate(
        "document.querySelector('#panel').scrollWidth <= document.querySelector('#panel').clientWidth"
    )
    assert page.locator("#map").bounding_box()["width"] > 0.55 * wide
    assert page.faults == []
    page.close()


def test_large_whole_numbers_stay_exact(page):
    told = page.evaluate(
        """import("/api.js").then(({ parsed }) =>
             parsed('{"names": [9007199254740993, 7], "x": [0.12345678901234567]}').names.map(String))"""
    )
    assert told == ["9007199254740993", "7"]


def test_elsewhere_the_page_asks_for_the_token(chromium, network, tmp_path):
    (tmp_path / "token").write_text("a-token-of-our-own-choice")
    arguments = ["--host", "0.0.0.0", "--token-file", str(tmp_path / "token")]
    with Running(network.model, tmp_path / "store", arguments) as public:
        page = opened(chromium, public)
        page.fill("#token", public.token)
        page.click("dialog button.main")
        page.wait_for_selector("#legend button")
        assert [fault for fault in page.faults if "401" not in fault] == []
        page.close()


def test_the_policy_lets_nothing_in_and_no_text_become_markup(network):
    policy = network.client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    for file in ROOT.rglob("*.js"):
        text = file.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        )
    for file in ROOT.rglob("*"):
        if file.is_file():
            assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", file.read_text()), file


def test_twins_are_the_nearest_profiles_of_like_degree(network):
    model = sg.SPINE.load(network.model)
    profiles = model.generator_.profile(model.graph_).weights
    degrees = model.graph_.degrees
    for root in (7, 40):
        like = np.flatnonzero(np.abs(np.log2((degrees + 1) / (degrees[root] + 1))) <= 1)
        like = like[like != root]
        assert len(like) >= 20
        apart = pair_distances(profiles, np.column_stack([np.full(len(like), root), like]))
        told = network.get(f"/v1/nodes/n{root}/twins", n=5)["matches"]
        assert [match["score"] for match in told] == pytest.approx(np.exp(-np.sort(apart)[:5]), rel=1e-3)


@pytest.mark.data
def test_papers_of_cora_are_drawn_beside_their_twins(chromium, tmp_path):
    if not Path(os.environ.get("SPINEGRAPH_DATA", ""), "cora.npz").is_file():
        pytest.skip("SPINEGRAPH_DATA names no folder with the real networks")
    cora = load("cora")
    sg.SPINE(dim=16, threads=1).fit(cora.graph).save(tmp_path / "model")
    with Running(tmp_path / "model", tmp_path / "store") as running:
        page = opened(chromium, running, path="/#306")
        page.wait_for_selector(".why li")
        page.wait_for_function("() => document.querySelectorAll('.cards .ego').length === 6")
        page.click("#tab-trial")
        page.click("text=Take the links of 306")
        page.wait_for_selector("#lands")
        assert page.locator(".picked li").count() == 78
        assert page.faults == []
        page.close()


def luminance(color):
    parts = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [
        0.2126,
        0.7152,
        0.0722,
    ]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_from_their_ground(theme):
    sheet = (ROOT / "styles" / "colors.css").read_text()
    block = re.search(rf':root\[data-theme="{theme}"\] {{(.*?)}}', sheet, re.DOTALL).group(1)
    colors = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", block))
    grounds = [colors["--ground"], colors["--pale"], colors["--raised"]]
    for name in ("--ink", "--quiet", "--accent", "--twin", "--fault", "--trial"):
        assert min(contrast(colors[name], ground) for ground in grounds) >= 4.5, name
    for name in ("--on-accent", "--on-twin"):
        assert contrast(colors[name], colors[name.replace("on-", "")]) >= 4.5
    assert contrast(colors["--caution"], colors["--caution-ground"]) >= 4.5
    points = [name for name in colors if re.fullmatch(r"--(c|d)\d+|--edge|--c-none", name)]
    assert len(points) == 22
    for name in points:
        assert contrast(colors[name], colors["--ground"]) >= 3, name


def test_points_are_drawn_alike_with_and_without_a_graphics_card(page):
    """Red at the centre, green above it, a dimmed blue to the right, and the ground elsewhere."""
    seen = page.evaluate(
        """async () => {
          const { GlPoints } = await import("/map/gl_points.js");
          const { FlatPoints } = await import("/map/flat_points.js");
          const blank = () => Object.assign(document.createElement("canvas"), { width: 60, height: 40 });
          return [(canvas) => GlPoints.of(canvas, true), (canvas) => new FlatPoints(canvas)].map((begun) => {
            const canvas = blank();
            const points = begun(canvas);
            points.place(new Float32Array(6), Float32Array.of(0, 0, 0, 1, 1, 0));
            points.color(Uint8Array.of(255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 102));
            points.order(Uint32Array.of(2, 0, 1));
            points.draw({ x: 0, y: 0, scale: 10 }, 6, 1);
            const flat = blank().getContext("2d");
            flat.fillStyle = "#fff";
            flat.fillRect(0, 0, 60, 40);
            flat.drawImage(canvas, 0, 0);
            const pixel = (x, y) => [...flat.getImageData(x, y, 1, 1).data.slice(0, 3)];
            return [pixel(30, 20), pixel(30, 10), pixel(40, 20), pixel(50, 30)];
          });
        }"""
    )
    assert seen[0][:2] == seen[1][:2] == [[255, 0, 0], [0, 255, 0]]
    for dimmed, ground in (one[2:] for one in seen):
        assert dimmed == pytest.approx([153, 153, 255], abs=3)
        assert ground == [255, 255, 255]


@pytest.mark.slow  # measures time
def test_a_hundred_thousand_points_move_smoothly(chromium, network):
    count, rng = 100_000, np.random.default_rng(0)
    places = rng.normal(size=(2, count)).round(4).tolist()
    told = {
        "version": 0,
        "method": "t-SNE",
        "names": list(range(count)),
        "x": places[0],
        "y": places[1],
        "degree": rng.integers(1, 99, count).tolist(),
        "role": rng.integers(0, 5, count).tolist(),
        "titles": list("abcde"),
        "descriptions": list("abcde"),
        "label": None,
        "labels": [],
        "parts": [],
    }
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    body = json.dumps(told)
    page.route("**/v1/map", lambda route: route.fulfill(body=body, content_type="application/json"))
    page.goto(network.url)
    page.wait_for_selector("body[data-drawn=yes]")
    spent = page.evaluate(
        """async () => {
          const { map } = await import("/app.js");
          const timed = (times, work) => {
            const started = performance.now();
            for (let at = 0; at < times; at += 1) work(at);
            return (performance.now() - started) / times;
          };
          return {
            frame: timed(10, () => { map.view.move(3, 1); map.draw(); }),
            pointer: timed(200, (at) => map.hovered([200 + at, 300])),
            colors: timed(3, () => map.recolor()),
          };
        }"""
    )
    page.close()
    # Without a graphics card, some 12 milliseconds on a quiet machine; a busy one gets some grace.
    assert spent["frame"] < 120
    assert spent["pointer"] < 8
    assert spent["colors"] < 400
