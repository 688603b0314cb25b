// A hypothetical node: choose its links and columns, and see what it would be.

import { get, node, post } from "../api.js";
import { combo } from "../combo.js";
import { element, short, shown } from "../dom.js";
import { dot, fault, nodesNamed, recolor } from "../naming.js";
import { emit, on, state } from "../state.js";
import { keeping } from "./keeping.js";
import { landing } from "./landing.js";

const PAUSE = 250; // milliseconds without input before a request
const CHOICES = 12; // columns suggested at a time

/** Build the panel; `stored` is called with the name of a node that was added. */
export function trialPanel(root, stored) {
  const draft = { name: "new node", links: new Map(), features: new Map() }; // features: by column of the table, or numbers
  let columns = { count: 0, names: null, fields: [], weighted: false };
  let [timer, asked] = [0, 0];
  const result = element("div", { class: "landing", "aria-live": "polite" });
  const links = element("ul", { class: "picked" });
  const features = element("ul", { class: "picked" });
  const fields = element("div", { id: "trial-fields", class: "fields", hidden: true });

  const body = () => ({
    name: draft.name,
    edges: [...draft.links].map(([to, weight]) => (columns.weighted ? { to, weight } : to)),
    ...(columns.count ? { features: Object.fromEntries(draft.features) } : {}),
  });

  // A node that is about to be added must not be embedded again, since its name would be taken.
  function settled() {
    clearTimeout(timer);
    asked += 1;
    return body();
  }

  async function embed() {
    const mine = (asked += 1);
    try {
      const answer = await post(`/v1/embed?n=8&why=true&map_by=${state.by}`, body());
      if (mine !== asked) return;
      const [found] = answer.nodes;
      state.trial = { name: draft.name, place: found.place, links: [...draft.links.keys()] };
      result.replaceChildren(landing(found));
    } catch (error) {
      if (mine !== asked) return;
      state.trial = null;
      result.replaceChildren(fault(error));
    }
    emit("trial");
  }

  function changed() {
    clearTimeout(timer);
    if (!draft.links.size && !draft.features.size) {
      asked += 1;
      state.trial = null;
      emit("trial");
      result.replaceChildren(element("p", { class: "note" }, "Link it to a node or fill in a column, and it appears on the map."));
      return;
    }
    timer = setTimeout(embed, PAUSE);
  }

  function link(name) {
    if (!draft.links.has(name)) draft.links.set(name, 1);
    list();
  }

  const set = (column, value) => { if (value === null) draft.features.delete(column); else draft.features.set(column, value); changed(); };

  function list() {
    links.replaceChildren(...[...draft.links].map(([name, weight]) => entry([dot(name), short(name, 30)], `Remove the link to ${name}`,
      () => { draft.links.delete(name); list(); },
      columns.weighted && number(weight, "Weight", 1e-6, (value) => { draft.links.set(name, value); changed(); }))));
    if (!columns.fields.length) features.replaceChildren(...[...draft.features].map(([name, value]) => entry([short(title(name), 30)], `Remove ${title(name)}`,
      () => { draft.features.delete(name); list(); }, number(value, title(name), undefined, (given) => set(name, given)))));
    changed();
  }

  /** Show inputs for the table's columns, filled with the draft's values. */
  function showFields() {
    fields.replaceChildren(...columns.fields.flatMap((field, at) => [
      element("label", { for: `trial-field-${at}`, title: field.name }, short(field.name, 28)), fieldFor(field, `trial-field-${at}`, draft.features.get(field.name), (value) => set(field.name, value))]));
  }

  const title = (column) => (columns.names ? column : `feature ${column}`);
  const offered = (text) => {
    const wanted = text.toLowerCase();
    const all = columns.names ?? Array.from({ length: columns.count }, (_, at) => String(at));
    const fitting = all.filter((name) => title(name).toLowerCase().includes(wanted));
    fitting.sort((a, b) => a.length - b.length);
    const offers = fitting.slice(0, CHOICES).map((name) => ({ value: name, title: title(name) }));
    return { offers, more: fitting.length > CHOICES ? `${fitting.length - CHOICES} more: keep typing` : "" };
  };

  async function copyChosen() {
    const [around, own] = await Promise.all([
      get(node(state.chosen, "neighborhood"), { radius: 1, most: 100 }), get(node(state.chosen, "row"))]);
    around.names.forEach((name, at) => around.hops[at] === 1 && draft.links.set(name, draft.links.get(name) ?? 1));
    for (const { name, kind } of columns.fields) {
      const value = own.row[name] ?? null;
      if (value !== null) draft.features.set(name, kind === "boolean" ? value === "yes" : value);
    }
    showFields();
    list();
  }

  function picker(id, label, placeholder, suggest, take) {
    const input = element("input", { id, type: "text", placeholder, autocomplete: "off", spellcheck: "false" });
    const made = element("div", { class: "combo" }, element("label", { for: id }, label), input);
    combo(input, { suggest, choose: (value) => { input.value = ""; take(value); } });
    return made;
  }

  const pick = element("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => picking(!state.isPicking) }, "Pick on the map");
  const copy = element("button", { type: "button", class: "chip", id: "trial-copy", onclick: () => copyChosen().catch((error) => result.replaceChildren(fault(error))) });
  const restart = () => { draft.links.clear(); draft.features.clear(); showFields(); list(); };
  const clear = element("button", { type: "button", class: "chip", onclick: restart }, "Start over");
  function picking(isOn) {
    state.isPicking = isOn;
    pick.setAttribute("aria-pressed", String(isOn));
    document.getElementById("map").classList.toggle("picking", isOn);
  }
  const offerCopy = () => {
    copy.hidden = state.chosen === null;
    copy.textContent = state.chosen === null ? "" : `Start from a copy of ${short(state.chosen, 18)}`;
  };
  const name = element("input", { id: "trial-name", type: "text", value: draft.name, maxlength: 256, autocomplete: "off",
    oninput: (event) => { draft.name = event.target.value.trim() || "new node"; changed(); } });
  const numbers = element("div", { hidden: true }, picker("trial-feature", "Columns", "a column's name", offered,
    (column) => { draft.features.set(column, 1); list(); }), features);

  root.replaceChildren(
    element("h2", {}, "What if there were a new node?"),
    element("p", { class: "note" }, "The model gives it a vector without retraining. It is not stored unless you add it below."),
    element("div", { class: "combo" }, element("label", { for: "trial-name" }, "Name"), name),
    picker("trial-link", "Links to", "part of a node's name", nodesNamed, link), links,
    element("div", { class: "chips" }, pick, copy, clear),
    fields, numbers, result, keeping(settled, (name) => { restart(); stored(name); }));
  on("picked", (picked) => (draft.links.has(picked) ? (draft.links.delete(picked), list()) : link(picked)));
  on("chosen", offerCopy);
  on("coloring", () => recolor(root));
  on("by", () => state.trial && changed());
  offerCopy();
  changed();

  return {
    async opened() {
      columns = await get("/v1/features");
      numbers.hidden = !columns.count || columns.fields.length > 0;
      fields.hidden = !columns.fields.length;
      showFields();
      list();
    },
    picking,
  };
}

/** An input for a column of the table: a number in its unit, a category as a list, or text; null if left empty. */
function fieldFor({ kind, levels, typical }, id, value, changed) {
  const read = { number: Number, boolean: (text) => text === "yes" }[kind] ?? String;
  const oninput = ({ target }) => { if (target.checkValidity()) changed(target.value === "" ? null : read(target.value)); };
  const text = value === undefined ? "" : kind === "boolean" ? (value ? "yes" : "no") : String(value);
  if (kind === "category" || kind === "boolean") {
    const options = kind === "boolean" ? ["no", "yes"] : levels;
    return element("select", { id, oninput }, ["", ...options].map((level) => element("option", { value: level, selected: level === text }, level || "unknown")));
  }
  if (kind === "date") return element("input", { id, type: "date", value: text.slice(0, 10), oninput });
  if (kind === "number") return element("input", { id, type: "number", step: "any", value: text, placeholder: `unknown; usually ${shown(typical ?? 0, Math.abs(typical) < 10 ? 2 : 0)}`, oninput });
  return element("input", { id, type: "text", value: text, maxlength: 256, placeholder: "unknown", oninput });
}

function entry(title, words, remove, ...more) {
  return element("li", {}, element("span", {}, title), ...more,
    element("button", { type: "button", class: "remove", "aria-label": words, title: words, onclick: remove }, "×"));
}

function number(value, label, least, changed) {
  return element("input", { type: "number", step: "any", min: least, value, "aria-label": label,
    oninput: (event) => { if (event.target.value !== "" && event.target.checkValidity()) changed(Number(event.target.value)); } });
}
