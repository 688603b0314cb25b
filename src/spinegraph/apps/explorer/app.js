// The page: loads the network, connects the parts of the page, and follows the address.

import { get, watchVersion } from "./api.js";
import { combo } from "./combo.js";
import { element, save, short, shown } from "./dom.js";
import { legend } from "./map/legend.js";
import { MapView } from "./map/map.js";
import { nodesNamed } from "./naming.js";
import { Network } from "./network.js";
import { listPanel } from "./panel/list.js";
import { nodePanel } from "./panel/node.js";
import { trialPanel } from "./panel/trial.js";
import { choose, emit, loaded, on, state } from "./state.js";

const SOON = [2, 3, 5, 8, 13, 20, 30, 60]; // seconds between requests while the map is being computed
const find = document.getElementById("find");
export const map = new MapView(document.getElementById("map"));
const tabs = ["tab-node", "tab-list", "tab-trial"].map((id) => document.getElementById(id));
const [NODE, LIST, TRIAL] = [0, 1, 2];
const trial = trialPanel(document.getElementById("trial"), async (name) => { await read(); open(NODE); choose(name); });

/** Load the network, and reload it until its maps and roles are finished. */
async function read(tries = 0) {
  const data = await get("/v1/map");
  const before = state.network;
  const network = new Network(data);
  if (state.chosen !== null && !network.has(state.chosen)) state.chosen = null;
  if (before && before.version !== network.version) state.selected = null;
  // The selection may change while columns are loaded.
  for (let before; before !== shownNow();) {
    before = shownNow();
    await follow(network);
  }
  state.network = network;
  offer();
  map.take(network, before);
  emit("network");
  document.getElementById("refresh").hidden = true;
  document.body.dataset.drawn = data.role ? "yes" : "partly";
  const { size, parts } = network;
  document.getElementById("about").textContent = `${shown(size)} ${size === 1 ? "node" : "nodes"}` +
    (data.role ? ` in ${data.titles.length} ${data.titles.length === 1 ? "role" : "roles"}` : ", computing roles …");
  const isFinished = data.role && (parts.length < 2 || parts.every((part) => network.groups[part]));
  if (!isFinished) setTimeout(() => read(tries + 1).catch(failed), 1000 * SOON[Math.min(tries, SOON.length - 1)]);
}

const shownNow = () => JSON.stringify([state.by, state.coloring, state.sizing, state.filters]);

/** Show of a new network what was shown of the previous one: the map by some part, and columns. */
async function follow(network) {
  const keys = new Set(network.offered(state.chosen).flatMap(([, entries]) => entries.map(([key]) => key)));
  const isThere = (key) => keys.has(key) || (key.startsWith("like:") && network.named(key.split(":").slice(2).join(":")) !== undefined);
  if (!isThere(state.coloring)) state.coloring = "role";
  if (!isThere(state.sizing)) state.sizing = "";
  state.filters = state.filters.filter(({ key }) => isThere(key));
  if (!network.parts.includes(state.by)) state.by = "all";
  await Promise.all([network.layout(state.by), ...[state.coloring, state.sizing, ...state.filters.map(({ key }) => key)]
    .filter(Boolean).map((key) => network.load(key))]);
  network.show(state.by);
}

/** Fill the choices of the map, and of its colours and sizes. */
function offer() {
  const { parts } = state.network;
  const by = document.getElementById("by");
  by.hidden = parts.length < 2;
  if (by.querySelectorAll("input").length !== parts.length + 1) {
    by.replaceChildren(element("legend", {}, "Map by"), ...["all", ...parts].map((part) => element("label", {},
      element("input", { type: "radio", name: "by", value: part, checked: part === state.by }), element("span", {}, part))));
  }
  for (const [id, first] of [["coloring", []], ["sizing", [["", [["", "all equal"]]]]]]) {
    const entries = [...first, ...state.network.offered(state.chosen)];
    // The current choice stays in the list even if another node is chosen now.
    const key = state[id];
    if (key && !entries.some(([, listed]) => listed.some(([one]) => one === key))) entries.push(["", [[key, state.network.column(key).title]]]);
    document.getElementById(id).replaceChildren(...entries.flatMap(([title, listed]) => {
      const options = listed.map(([value, words]) => element("option", { value, selected: value === key }, short(words, 40)));
      return title ? [element("optgroup", { label: short(title, 40) }, options)] : options;
    }));
  }
}

function open(at) {
  tabs.forEach((tab, place) => {
    const isOpen = place === at;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isOpen;
  });
  state.isTrying = at === TRIAL;
  trial.picking(at === TRIAL);
  if (at === TRIAL) trial.opened().catch(failed);
  emit("tab");
}

function failed(error) {
  document.getElementById("about").textContent = error.message;
}

function followAddress() {
  const text = decodeURIComponent(location.hash.slice(1));
  if (!text || !state.network) return;
  const name = state.network.named(text);
  if (name !== undefined && name !== state.chosen) choose(name);
}

on("chosen", () => {
  const { chosen } = state;
  history.replaceState(null, "", chosen === null ? location.pathname : `#${encodeURIComponent(String(chosen))}`);
  document.title = chosen === null ? "spinegraph explorer" : `${chosen} · spinegraph explorer`;
  if (chosen !== null) open(NODE);
  offer();
});
on("selected", () => { if (state.selected) open(LIST); });
on("color", (key) => show("coloring", key));
combo(find, { suggest: nodesNamed, choose: (name) => {
  find.value = "";
  // The search includes nodes that were added since the map was loaded.
  if (state.network.has(name)) choose(name);
  else read().then(() => choose(name)).catch(failed);
} });
/** Colour or size the map by a column, once it is loaded. */
async function show(id, key) {
  if (key) await loaded(key);
  if (id === "coloring") state.muted.clear();
  state[id] = key;
  offer();
  emit(id);
}

for (const id of ["coloring", "sizing"]) {
  document.getElementById(id).addEventListener("change", ({ target }) => show(id, target.value).catch(failed));
}
document.getElementById("by").addEventListener("change", ({ target }) => {
  state.by = target.value;
  map.show(state.by).then(() => emit("by")).catch(failed);
});
document.getElementById("picture").addEventListener("click", async () => {
  save(await map.picture(state.network.column(state.coloring).title), "map.png");
});
document.getElementById("refresh").addEventListener("click", () => read().catch(failed));
tabs.forEach((tab, at) => {
  tab.addEventListener("click", () => open(at));
  tab.addEventListener("keydown", ({ key }) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const next = (at + (key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length;
    open(next);
    tabs[next].focus();
  });
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "/" && !isTyping) { event.preventDefault(); find.focus(); find.select(); }
  else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (isTyping) event.target.blur();
    else if (state.selected) { state.selected = null; emit("selected"); }
    else choose(null);
  }
});
addEventListener("hashchange", followAddress);
legend(document.getElementById("legend"));
nodePanel(document.getElementById("node"));
listPanel(document.getElementById("list"), map);
watchVersion((version) => {
  if (state.network && version > state.network.version) document.getElementById("refresh").hidden = false;
});
read().then(followAddress).catch(failed);
