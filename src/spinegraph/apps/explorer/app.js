// The page: reads the network, connects its parts, and follows the address.

import { get, watchVersion } from "./api.js";
import { combo } from "./combo.js";
import { element, shown } from "./dom.js";
import { legend } from "./map/legend.js";
import { MapView } from "./map/map.js";
import { nodesNamed } from "./naming.js";
import { Network } from "./network.js";
import { nodePanel } from "./panel/node.js";
import { trialPanel } from "./panel/trial.js";
import { choose, on, state, tell } from "./state.js";

const SOON = [2, 3, 5, 8, 13, 20, 30, 60]; // seconds until the map is asked for again while it is being made
const find = document.getElementById("find");
export const map = new MapView(document.getElementById("map"));
const tabs = [document.getElementById("tab-node"), document.getElementById("tab-trial")];
const trial = trialPanel(document.getElementById("trial"), async (name) => { await read(); open(0); choose(name); });

/** Read the network; until its map and roles are finished, again and again. */
async function read(tries = 0) {
  const told = await get("/v1/map");
  const before = state.network;
  state.network = new Network(told);
  if (state.chosen !== null && !state.network.has(state.chosen)) state.chosen = null;
  offerColorings();
  map.take(state.network, before);
  tell("network");
  document.getElementById("refresh").hidden = true;
  document.body.dataset.drawn = told.role ? "yes" : "partly";
  const { size } = state.network;
  document.getElementById("about").textContent = `${shown(size)} ${size === 1 ? "node" : "nodes"}` +
    (told.role ? ` in ${told.titles.length} ${told.titles.length === 1 ? "role" : "roles"}` : ", roles are being found …");
  if (!told.role) setTimeout(() => read(tries + 1).catch(failed), 1000 * SOON[Math.min(tries, SOON.length - 1)]);
}

function offerColorings() {
  const select = document.getElementById("coloring");
  const { offered } = state.network;
  if (!offered.includes(state.coloring)) state.coloring = "role";
  select.replaceChildren(...offered.map((kind) => element("option", { value: kind, selected: kind === state.coloring }, { degree: "number of links" }[kind] ?? kind)));
}

function open(at) {
  tabs.forEach((tab, place) => {
    const isOpen = place === at;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isOpen;
  });
  state.isTrying = at === 1;
  trial.picking(at === 1);
  if (at === 1) trial.opened().catch(failed);
  tell("tab");
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
  if (chosen !== null) open(0);
});
combo(find, { suggest: nodesNamed, choose: (name) => {
  find.value = "";
  // The directory knows nodes that joined since the map was read.
  if (state.network.has(name)) choose(name);
  else read().then(() => choose(name)).catch(failed);
} });
document.getElementById("coloring").addEventListener("change", ({ target }) => { state.coloring = target.value; tell("coloring"); });
document.getElementById("refresh").addEventListener("click", () => read().catch(failed));
tabs.forEach((tab, at) => {
  tab.addEventListener("click", () => open(at));
  tab.addEventListener("keydown", ({ key }) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    open(1 - at);
    tabs[1 - at].focus();
  });
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "/" && !isTyping) { event.preventDefault(); find.focus(); find.select(); }
  else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (isTyping) event.target.blur(); else choose(null);
  }
});
addEventListener("hashchange", followAddress);
legend(document.getElementById("legend"));
nodePanel(document.getElementById("node"));
watchVersion((version) => {
  if (state.network && version > state.network.version) document.getElementById("refresh").hidden = false;
});
read().then(followAddress).catch(failed);
