// A node that is not there yet: choose its links and features, and watch where it lands.

import { get, node, post } from "../api.js";
import { combo } from "../combo.js";
import { element, short } from "../dom.js";
import { dot, fault, nodesNamed, recolor } from "../naming.js";
import { on, state, tell } from "../state.js";
import { keeping } from "./keeping.js";
import { landing } from "./landing.js";

const PAUSE = 250; // milliseconds of quiet before the service is asked
const CHOICES = 12; // columns offered at a time

/** Build the panel; `told` is called with the name of a node that was stored. */
export function trialPanel(root, stored) {
  const draft = { name: "new node", links: new Map(), features: new Map() };
  let columns = { count: 0, names: null, table: null, weighted: false };
  let [timer, asked] = [0, 0];
  const result = element("div", { class: "landing", "aria-live": "polite" });
  const links = element("ul", { class: "picked" });
  const features = element("ul", { class: "picked" });

  const body = () => ({
    name: draft.name,
    edges: [...draft.links].map(([to, weight]) => (columns.weighted ? { to, weight } : to)),
    ...(columns.count ? { features: columns.table ? columns.names.map((name) => draft.features.get(name) ?? 0) : Object.fromEntries(draft.features) } : {}),
  });

  // What is about to be stored must not be tried once more: its name would be taken.
  function settled() {
    clearTimeout(timer);
    asked += 1;
    return body();
  }

  async function embed() {
    const mine = (asked += 1);
    try {
      const told = await post("/v1/embed?n=8", body());
      if (mine !== asked) return;
      const [found] = told.nodes;
      state.trial = { name: draft.name, place: found.place, links: [...draft.links.keys()] };
      result.replaceChildren(landing(found));
    } catch (error) {
      if (mine !== asked) return;
      state.trial = null;
      result.replaceChildren(fault(error));
    }
    tell("trial");
  }

  function changed() {
    clearTimeout(timer);
    if (!draft.links.size && !draft.features.size) {
      asked += 1;
      state.trial = null;
      tell("trial");
      result.replaceChildren(element("p", { class: "note" }, "Link it to somebody, and it lands on the map."));
      return;
    }
    timer = setTimeout(embed, PAUSE);
  }

  function link(name) {
    if (!draft.links.has(name)) draft.links.set(name, 1);
    list();
  }

  function list() {
    links.replaceChildren(...[...draft.links].map(([name, weight]) => entry([dot(name), short(name, 30)], `Remove the link to ${name}`,
      () => { draft.links.delete(name); list(); },
      columns.weighted && number(weight, "Weight", 1e-6, (value) => { draft.links.set(name, value); changed(); }))));
    features.replaceChildren(...[...draft.features].map(([name, value]) => entry([short(title(name), 30)], `Remove ${title(name)}`,
      () => { draft.features.delete(name); list(); },
      number(value, title(name), undefined, (given) => { draft.features.set(name, given); changed(); }))));
    changed();
  }

  const title = (column) => (columns.names ? column : `feature ${column}`);
  const offered = (text) => {
    const wanted = text.toLowerCase();
    const all = columns.names ?? Array.from({ length: columns.count }, (_, at) => String(at));
    const fitting = all.filter((name) => title(name).toLowerCase().includes(wanted));
    fitting.sort((a, b) => a.length - b.length);
    const offers = fitting.slice(0, CHOICES).map((name) => ({ value: name, title: title(name) }));
    return { offers, more: fitting.length > CHOICES ? `${fitting.length - CHOICES} more: type on` : "" };
  };

  async function copyChosen() {
    const around = await get(node(state.chosen, "neighborhood"), { radius: 1, most: 100 });
    around.names.forEach((name, at) => around.hops[at] === 1 && draft.links.set(name, draft.links.get(name) ?? 1));
    list();
  }

  function field(id, label, placeholder, suggest, take) {
    const input = element("input", { id, type: "text", placeholder, autocomplete: "off", spellcheck: "false" });
    const made = element("div", { class: "combo" }, element("label", { for: id }, label), input);
    combo(input, { suggest, choose: (value) => { input.value = ""; take(value); } });
    return made;
  }

  const pick = element("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => picking(!state.isPicking) }, "Pick on the map");
  const copy = element("button", { type: "button", class: "chip", onclick: () => copyChosen().catch((error) => result.replaceChildren(fault(error))) });
  const clear = element("button", { type: "button", class: "chip", onclick: () => { draft.links.clear(); draft.features.clear(); list(); } }, "Begin again");
  function picking(isOn) {
    state.isPicking = isOn;
    pick.setAttribute("aria-pressed", String(isOn));
    document.getElementById("map").classList.toggle("picking", isOn);
  }
  const offerCopy = () => {
    copy.hidden = state.chosen === null;
    copy.textContent = state.chosen === null ? "" : `Take the links of ${short(state.chosen, 18)}`;
  };
  const name = element("input", { id: "trial-name", type: "text", value: draft.name, maxlength: 256, autocomplete: "off",
    oninput: (event) => { draft.name = event.target.value.trim() || "new node"; changed(); } });
  const scale = element("p", { class: "note", hidden: true }, "Numbers of a table are told by how far they are from its average: 0 is the average.");
  const featureFields = element("div", { hidden: true }, field("trial-feature", "Features", "a column's name", offered,
    (column) => { draft.features.set(column, 1); list(); }), features, scale);

  root.replaceChildren(
    element("h2", {}, "What if a node joined?"),
    element("p", { class: "note" }, "The model gives it a vector without learning anew. Nothing is stored unless you say so below."),
    element("div", { class: "combo" }, element("label", { for: "trial-name" }, "Name"), name),
    field("trial-link", "Links to", "a node's name", nodesNamed, link), links,
    element("div", { class: "chips" }, pick, copy, clear),
    featureFields, result, keeping(settled, (told) => { draft.links.clear(); draft.features.clear(); list(); stored(told); }));
  on("picked", (picked) => (draft.links.has(picked) ? (draft.links.delete(picked), list()) : link(picked)));
  on("chosen", offerCopy);
  on("coloring", () => recolor(root));
  offerCopy();
  changed();

  return {
    async opened() {
      columns = await get("/v1/features");
      featureFields.hidden = !columns.count;
      scale.hidden = !columns.table;
      list();
    },
    picking,
  };
}

function entry(title, words, remove, ...more) {
  return element("li", {}, element("span", {}, title), ...more,
    element("button", { type: "button", class: "remove", "aria-label": words, title: words, onclick: remove }, "×"));
}

function number(value, label, least, changed) {
  return element("input", { type: "number", step: "any", min: least, value, "aria-label": label,
    oninput: (event) => { if (event.target.value !== "" && event.target.checkValidity()) changed(Number(event.target.value)); } });
}
