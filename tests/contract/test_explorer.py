"""The explorer in a real browser, against a real service: seen, clicked, typed into, never leaving it."""

import csv
import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import browser
import spinegraph as sg
from running_service import Running, small_graph, small_model
from spinegraph.analysis.plots import COLORS
from spinegraph.graph.datasets import load
from spinegraph.structure.similarity import as_rows, comparison

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
    with Running(small_model(folder / "model", graph), folder / "store", arguments, draws=True) as running:
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


def resolved(page, promised, given=None):
    """Wait until a promise resolves to true; to ``wait_for_function`` any promise is."""
    until = time.monotonic() + 10
    while not page.evaluate(promised, given):
        assert time.monotonic() < until, promised
        page.wait_for_timeout(20)


def find(page, name):
    page.evaluate("document.activeElement.blur()")
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
    assert page.locator("#coloring > option").all_inner_texts() == ["role", "label", "number of links"]
    assert page.locator("#coloring optgroup").first.locator("option").count() == 12  # columns
    page.select_option("#coloring", "label")
    page.locator("#legend span", has_text="<img src=x").wait_for()
    page.locator("#legend button").first.click()
    assert page.locator("#legend button").first.get_attribute("aria-pressed") == "false"
    page.select_option("#coloring", "degree")
    page.locator("#legend h2", has_text="Links").wait_for()


@pytest.mark.parametrize(("wide", "high"), [(1280, 800), (390, 844)])
def test_the_map_stays_still_when_the_colour_changes(chromium, network, wide, high):
    page = opened(chromium, network, wide=wide, high=high)
    page.wait_for_selector("body[data-drawn=yes]")
    where = """() => import("/app.js").then(({ map }) =>
        [map.view.x, map.view.y, map.view.scale, map.view.wide, map.view.high, ...map.grid.x])"""
    before, seen = page.evaluate(where), page.locator("#map").bounding_box()
    for key in ("label", "degree", "column:word 3", "group:content", "role"):
        page.select_option("#coloring", key)
        page.wait_for_function("key => document.getElementById('legend').dataset.key === key", arg=key)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate(where) == before
        assert page.locator("#map").bounding_box() == seen
    assert page.faults == []
    page.close()


def test_a_click_on_the_map_chooses_the_node_that_lies_there(page, network):
    told = network.get("/v1/map")
    x, y = np.array(told["x"]), np.array(told["y"])
    box = page.locator("#marks").bounding_box()
    tools = 36  # pixels at the top that the map leaves free
    scale = min((box["width"] - 56) / np.ptp(x), (box["height"] - 56 - tools) / np.ptp(y))
    across = box["width"] / 2 + (x - (x.min() + x.max()) / 2) * scale
    down = (box["height"] + tools) / 2 - (y - (y.min() + y.max()) / 2) * scale
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
    page.click("text=Structural twins")
    page.wait_for_function("() => document.querySelector('.why h4').textContent.includes(' is a twin of ')")
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
    page.click("text=Structural twins")
    page.wait_for_function("() => document.querySelector('.why h4').textContent.includes(' is a twin of ')")
    second = page.locator("button.card").nth(1)
    name = second.locator("b").inner_text()
    second.click()
    page.wait_for_function(f"() => document.querySelector('.why h4').textContent.startsWith('Why {name} ')")
    page.click(".switches button[data-kind=similar]")
    first = network.get("/v1/nodes/n7/similar", n=1)["matches"][0]["name"]
    page.wait_for_function(
        f"() => document.querySelector('.why h4').textContent === 'Why {first} is like n7'"
    )
    page.click(f"text=Go to {first}")
    assert page.inner_text("#node h2") == first
    assert page.get_attribute(".switches button[data-kind=similar]", "aria-pressed") == "true"  # stays


def test_nodes_alike_by_one_part_are_shown_and_explained(page, network):
    find(page, "n7")
    page.wait_for_selector(".why li")
    for part in ("content", "place", "role"):
        page.click(f".switches button[data-kind={part}]")
        first = network.get("/v1/nodes/n7/similar", n=1, by=part)["matches"][0]["name"]
        page.wait_for_function(
            "words => document.querySelector('.why h4').textContent === words", arg=f"Why {first} is like n7"
        )
        told = network.get(f"/v1/nodes/n7/explain/{first}")
        (cosine,) = [one["cosine"] for one in told["parts"] if one["name"] == part]
        page.wait_for_function(
            "words => document.querySelector('button.card small').textContent.includes(words)",
            arg=f"{part} {cosine:.2f}",
        )
        shown = page.locator(".why .parts .note").inner_text()
        assert all(one["name"] in shown for one in told["parts"] if one["share"] > 0.005)
    page.click(".switches button[data-kind=similar]")


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
    resolved(
        page,
        "place => import('/app.js').then(({ map }) => place.every((at, axis) => map.star[axis] === at))",
        told["place"],
    )
    page.locator(".picked .remove").first.click()
    page.wait_for_function("() => document.querySelectorAll('.picked li').length === 2")
    assert network.get("/v1/map")["version"] == before


def test_on_this_computer_a_node_is_kept_without_a_token(page, network):
    page.click("#tab-trial")
    page.focus("#marks")
    page.keyboard.press("Enter")  # the node at the cross
    page.wait_for_selector("#lands")
    assert page.locator(".picked li").count() == 1
    page.fill("#trial-name", "kept & shown")
    page.click(".keeping summary")
    page.click("#store")
    page.wait_for_function("() => document.querySelector('#node h2')?.textContent === 'kept & shown'")
    assert page.locator("dialog[open]").count() == 0
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
    for _ in range(32):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        style = (
            "getComputedStyle(document.activeElement.matches('.segments input') ? "
            "document.activeElement.nextElementSibling : document.activeElement)"
        )
        assert page.evaluate(f"parseFloat({style}.outlineWidth)") >= 2, seen[-1]
    for part in ("skip", "find", "coloring", "sizing", "marks", "picture", "tab-node", "chip"):
        assert part in seen
    page.focus("#tab-node")
    page.keyboard.press("ArrowRight")
    assert page.locator("#list").is_visible()
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
    assert page.locator("#map").bounding_box()["width"] > 0.45 * wide
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
    with Running(network.model, tmp_path / "store", arguments, draws=True) as public:
        page = opened(chromium, public)
        page.fill("#token", public.token)
        page.click("dialog button.main")
        page.wait_for_selector("#legend button")
        page.reload()
        page.locator("dialog", has_text="another computer").wait_for()
        page.fill("#token", "a-token-of-no-service")
        page.keyboard.press("Enter")
        page.locator("#about", has_text="This is not the service's token").wait_for()
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


ABOUT = "Likes <b>item {}</b>, and writes long lines about it"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Rows of the nodes n0, n1, ...: numbers with gaps, categories, dates, truths and text."""
    rng = np.random.default_rng(3)
    return {
        "team": rng.choice(["north", "south", "east"], 90).tolist(),
        "salary": [
            None if place % 17 == 5 else int(pay)
            for place, pay in enumerate(rng.integers(30_000, 90_000, 90))
        ],
        "joined": [f"20{year}-03-0{day}" for year, day in rng.integers([10, 1], [25, 9], (90, 2))],
        "remote": (rng.random(90) < 0.5).tolist(),
    }


@pytest.fixture(scope="module")
def people(tmp_path_factory, table):
    """A service of a model that was fitted on a table, with the table beside it."""
    folder, graph = tmp_path_factory.mktemp("people"), small_graph()
    encoder = sg.FeatureEncoder().fit(table)
    graph = graph.with_features(encoder.transform(table), feature_names=encoder.feature_names_)
    sg.SPINE(dim=32, k=10).fit(graph, encoder=encoder).save(folder / "model")
    rows = [f'n{place},"{ABOUT.format(place)}"' for place in range(90)]
    (folder / "about.csv").write_text("\n".join(["name,about", *rows]))
    arguments = ["--table", str(folder / "about.csv")]
    with Running(folder / "model", folder / "store", arguments, draws=True) as running:
        running.wait_for_roles("n3")
        until = time.monotonic() + 120
        while len(running.get("/v1/map")["groups"]) < 3:
            assert time.monotonic() < until, "no maps by parts"
            time.sleep(0.2)
        yield running


@pytest.fixture
def person(chromium, people):
    shown = opened(chromium, people)
    shown.wait_for_selector("body[data-drawn=yes]")
    yield shown
    assert shown.faults == []
    shown.close()


def colored(page, key):
    """Colour by a column; return the codes of all nodes' groups and the groups."""
    page.select_option("#coloring", key)
    page.wait_for_function("key => document.getElementById('legend').dataset.key === key", arg=key)
    return page.evaluate(
        """key => import("/state.js").then(({ state }) => {
            const { code, groups } = state.network.coloring(key);
            return [[...code], groups];
        })""",
        key,
    )


def test_a_node_shows_its_own_row(person, people, table):
    find(person, "n7")
    person.wait_for_selector("table.columns")
    names = person.locator("table.columns th").all_inner_texts()
    row = dict(zip(names, person.locator("table.columns td").all_inner_texts(), strict=True))
    assert row == {
        "team": table["team"][7],
        "salary": f"{table['salary'][7]:,}",
        "joined": table["joined"][7],
        "remote": "yes" if table["remote"][7] else "no",
        "about": ABOUT.format(7),
    }
    find(person, "n5")
    person.locator("table.columns td", has_text="missing").wait_for()
    person.click("table.columns th >> text=team")
    person.locator("#legend h2", has_text="team").wait_for()


def test_nodes_are_coloured_by_any_column_part_or_role(person, people, table):
    code, groups = colored(person, "column:team")
    assert [groups[at]["title"] for at in code] == table["team"]
    code, groups = colored(person, "column:salary")
    known = [pay for pay in table["salary"] if pay is not None]
    assert sum(group["count"] for group in groups) == 90
    assert groups[-1] == {"title": "none", "color": "--c-none", "count": 90 - len(known)}
    order = [
        at for pay, at in sorted((pay, at) for pay, at in zip(table["salary"], code, strict=True) if pay)
    ]
    assert order == sorted(order)
    _, groups = colored(person, "column:joined")
    assert groups[0]["title"].startswith(min(table["joined"]))
    code, groups = colored(person, "role")
    told = people.get("/v1/map")
    assert [groups[at]["title"] for at in code] == [told["titles"][role] for role in told["role"]]
    assert {group["color"] for group in groups} == {f"--c{role}" for role in set(told["role"])}
    for part in ("content", "place", "role"):
        code, groups = colored(person, f"group:{part}")
        assert [groups[at]["title"] for at in code] == [f"group {at + 1}" for at in told["groups"][part]]
    find(person, "n7")
    code, groups = colored(person, "like:role:n7")
    assert code[7] == max(code)  # most like itself


def test_nodes_are_sized_by_any_column(person, table):
    sizes = "import('/app.js').then(({ map }) => [...map.points.factors])"
    assert set(person.evaluate(sizes)) == {1}
    person.select_option("#sizing", "column:salary")
    resolved(person, "() => import('/app.js').then(({ map }) => map.points.factors[0] !== 1)")
    found = person.evaluate(sizes)
    pays = [-1 if pay is None else pay for pay in table["salary"]]
    assert found[int(np.argmax(pays))] == max(found) > 2 > 0.7 > min(found)
    assert found[5] == min(found)  # not known
    person.select_option("#sizing", "role")
    resolved(
        person, "found => import('/app.js').then(({ map }) => map.points.factors[0] !== found)", found[0]
    )


def test_filters_leave_some_nodes_in_colour_and_the_list_is_saved(person, table):
    person.click("#tab-list")
    person.locator("#counted", has_text="90 of 90 nodes in colour").wait_for()
    person.select_option("#filter-column", "column:team")
    person.select_option("#filter-level", "south")
    south = [place for place in range(90) if table["team"][place] == "south"]
    person.locator("#counted", has_text=f"{len(south)} of 90").wait_for()
    person.select_option("#filter-column", "column:salary")
    person.fill("#filter-from", "50000")
    person.click("#filter-add")
    rich = [place for place in south if (table["salary"][place] or 0) >= 50_000]
    person.locator("#counted", has_text=f"{len(rich)} of 90").wait_for()
    bright = person.evaluate("import('/app.js').then(({ map }) => [...map.inColor])")
    assert np.flatnonzero(bright).tolist() == rich
    with person.expect_download() as saved:
        person.click("#save-csv")
    assert saved.value.suggested_filename == "nodes.csv"
    rows = list(csv.DictReader(Path(saved.value.path()).read_text().splitlines()))
    assert [row["name"] for row in rows] == [f"n{place}" for place in rich]
    assert [row["salary"] for row in rows] == [str(table["salary"][place]) for place in rich]
    assert [row["joined"] for row in rows] == [table["joined"][place] for place in rich]
    assert [row["about"] for row in rows] == [ABOUT.format(place) for place in rich]
    assert {"role", "links"} <= set(rows[0])
    person.locator("#list .remove").first.click()
    person.locator("#list .remove").first.click()
    person.locator("#counted", has_text="90 of 90").wait_for()


@pytest.mark.parametrize("tool", ["box", "lasso", "shift", "keys"])
def test_nodes_are_selected_on_the_map(person, tool):
    box = person.locator("#marks").bounding_box()
    corners = [(0.1, 0.12), (0.6, 0.12), (0.6, 0.7), (0.1, 0.7)]
    if tool == "keys":
        person.click("#tab-list")
        person.focus("#marks")
        for key in ("+", "+", "ArrowLeft"):
            person.keyboard.press(key)
        person.focus("#select-seen")
        person.keyboard.press("Enter")
        corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    else:
        if tool != "shift":
            person.check(f"input[name=tool][value={tool}]", force=True)
        path = [corners[0], *(corners[2:3] if tool != "lasso" else [*corners[1:], corners[0]])]
        if tool == "shift":
            person.keyboard.down("Shift")
        for at, (across, down) in enumerate(path):
            person.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"], steps=4)
            if not at:
                person.mouse.down()
        person.mouse.up()
        person.keyboard.up("Shift")
    person.locator("#counted", has_text="selected").wait_for()
    chosen, where = person.evaluate(
        """Promise.all([import("/state.js"), import("/app.js")]).then(([{ state }, { map }]) => [
            [...state.selected].sort((a, b) => a - b),
            [...state.network.x].map((x, place) => map.view.pixels(x, state.network.y[place])),
        ])"""
    )
    size = np.array([box["width"], box["height"]])
    where, low, high = np.array(where), corners[0] * size, corners[2] * size
    assert chosen == np.flatnonzero(((where >= low) & (where <= high)).all(axis=1)).tolist()
    assert 0 < len(chosen) < 90
    assert person.locator("#list .chip").count() >= len(chosen)
    person.evaluate("document.activeElement.blur()")
    person.keyboard.press("Escape")
    person.locator("#counted", has_text="90 of 90").wait_for()


def test_the_map_is_saved_as_a_picture(person):
    colored(person, "column:team")
    with person.expect_download() as saved:
        person.click("#picture")
    assert saved.value.suggested_filename == "map.png"
    picture = Path(saved.value.path()).read_bytes()
    assert picture.startswith(b"\x89PNG")
    wide = int.from_bytes(picture[16:20])
    assert wide == round(person.locator("#marks").bounding_box()["width"])
    inked = """async (bytes) => {
        const picture = await createImageBitmap(new Blob([Uint8Array.from(bytes)]));
        const pen = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
        pen.drawImage(picture, 0, 0);
        const { data } = pen.getImageData(0, 0, picture.width, picture.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    assert person.evaluate(inked, list(picture)) > 20  # colours


def test_the_map_is_by_any_part(person, people):
    for part in ("content", "place", "role", "all"):
        person.check(f"#by input[value={part}]", force=True)
        told = people.get("/v1/layout", by=part)
        assert told["method"] == "t-SNE"
        resolved(
            person,
            "x => import('/app.js').then(({ map }) => Math.abs(map.grid.x[0] - x) < 1e-6 && map.share === 1)",
            told["x"][0],
        )
        assert person.evaluate("import('/app.js').then(({ map }) => [...map.grid.y])") == pytest.approx(
            told["y"], abs=1e-6
        )


def test_names_are_found_by_any_piece(person):
    person.fill("#find", "8")
    person.locator("[role=option]", has_text="n28").wait_for()
    assert person.locator("[role=option] span").first.inner_text() == "n8"


def test_a_new_node_has_the_tables_own_fields_and_is_told_what_it_would_be(person, people, table):
    person.click("#tab-trial")
    person.wait_for_selector("#trial-fields label")  # once the columns are there
    labels = person.locator("#trial-fields label").all_inner_texts()
    assert labels == ["team", "salary", "joined", "remote"]
    field = {name: f"#trial-field-{at}" for at, name in enumerate(labels)}
    options = person.locator(f"{field['team']} option").all_inner_texts()
    assert options == ["unknown", "east", "north", "south"]
    mean = np.mean([pay for pay in table["salary"] if pay is not None])
    assert f"{mean:,.0f}" in person.get_attribute(field["salary"], "placeholder")
    assert person.get_attribute(field["joined"], "type") == "date"
    person.select_option(field["team"], "south")
    person.fill(field["salary"], "61000")
    person.fill(field["joined"], "2020-03-04")
    person.select_option(field["remote"], "yes")
    person.fill("#trial-link", "17")  # a piece of a name
    person.locator("[role=option]", has_text="n17").wait_for()
    person.keyboard.press("Enter")
    row = {"team": "south", "salary": 61000, "joined": "2020-03-04", "remote": True}
    body = {"name": "new node", "edges": ["n17"], "features": row}
    told = people.client.post("/v1/embed?n=8&why=true", json=body).json()["nodes"][0]
    person.wait_for_function(
        "words => document.querySelector('#would-be')?.textContent.startsWith(words)",
        arg=told["role"]["title"],
    )
    person.wait_for_function(
        "words => document.querySelector('#reasons')?.textContent.includes(words)", arg=told["words"][0]
    )
    reasons = person.inner_text("#reasons")
    for part, match in told["nearest_by_part"].items():
        assert f"By {part} it is most like {match['name']}" in reasons
    colored(person, "column:team")
    find(person, "n4")
    person.click("#tab-trial")
    person.click("#trial-copy")
    person.wait_for_function(
        "team => document.querySelector('#trial-field-0').value === team", arg=table["team"][4]
    )
    assert person.input_value(field["salary"]) == str(table["salary"][4])


def test_the_page_is_usable_on_a_phone(chromium, people):
    page = opened(chromium, people, path="/#n7", wide=390, high=844, has_touch=True)
    page.wait_for_selector(".why li")
    for tab in ("tab-node", "tab-list", "tab-trial"):
        page.tap(f"#{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") == 390, tab
        cut = page.evaluate(
            """() => [...document.querySelectorAll("button, input:not([type=radio]), select, #panel p, td")]
                .filter((one) => one.checkVisibility()).map((one) => [one.getBoundingClientRect(), one])
                .filter(([box]) => box.width && (box.right > 391 || box.left < -1))
                .map(([, one]) => one.id || one.textContent)"""
        )
        assert cut == [], tab
    assert page.locator("#map").bounding_box()["height"] > 300
    page.select_option("#coloring", "column:team")
    page.locator("#legend h2", has_text="team").wait_for()
    assert page.faults == []
    page.close()


def test_twins_are_the_nearest_profiles_of_like_degree(network):
    model = sg.SPINE.load(network.model)
    profiles = model.generator_.profile(model.graph_).weights
    degrees = model.graph_.degrees
    for root in (7, 40):
        like = np.flatnonzero(np.abs(np.log2((degrees + 1) / (degrees[root] + 1))) <= 1)
        like = like[like != root]
        assert len(like) >= 20
        apart = comparison("dtw", as_rows(profiles, "profiles"))(np.full(len(like), root), like)
        told = network.get(f"/v1/nodes/n{root}/twins", n=5)["matches"]
        assert [match["score"] for match in told] == pytest.approx(np.exp(-np.sort(apart)[:5]), rel=1e-3)


@pytest.mark.slow
@pytest.mark.data
def test_papers_of_cora_are_drawn_beside_their_twins(chromium, tmp_path):
    if not Path(os.environ.get("SPINEGRAPH_DATA", ""), "cora.npz").is_file():
        pytest.skip("SPINEGRAPH_DATA names no folder with the real networks")
    cora = load("cora")
    sg.SPINE(dim=16, threads=1).fit(cora.graph).save(tmp_path / "model")
    with Running(tmp_path / "model", tmp_path / "store", draws=True) as running:
        page = opened(chromium, running, path="/#306")
        page.wait_for_selector(".why li")
        page.wait_for_function("() => document.querySelectorAll('.cards .ego').length === 6")
        page.click("#tab-trial")
        page.click("#trial-copy")
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
    points = [name for name in colors if re.fullmatch(r"--d\d+|--edge|--c-none", name)]
    assert len(points) == 10
    for name in points:
        assert contrast(colors[name], colors["--ground"]) >= 3, name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_groups_have_the_colours_of_the_report_and_stand_out(page, theme):
    page.check(f"#theme input[value={theme}]", force=True)
    read = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    ground, shown = (
        page.evaluate(read, "--ground"),
        [page.evaluate(read, f"--c{at}") for at in range(len(COLORS))],
    )
    for color, own in zip(shown, COLORS, strict=True):
        assert contrast(color, ground) >= 3
        assert color == own or contrast(own, ground) < 3.05  # only where it would not stand out
    page.check("#theme input[value=auto]", force=True)


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
            points.resize(Float32Array.of(1, 1, 1));
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
        "colors": list(COLORS),
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
