// A node's surroundings next to those of similar nodes, and why they are similar.

import { get, node } from "../api.js";
import { element, short, shown } from "../dom.js";
import { dot, fault } from "../naming.js";
import { choose, emit, state } from "../state.js";
import { ego } from "./ego.js";
import { why } from "./why.js";

const COUNT = 5;
const SOON = 2500; // milliseconds until a request for something not ready is repeated
const KINDS = {
  similar: { title: "All", note: "Nodes with the most similar vectors, by all parts together." },
  content: { title: "Content", note: "Nodes with the most similar features: their own and those around them." },
  place: { title: "Place", note: "Nodes in the same region of the network." },
  role: { title: "Role", note: "Nodes with the most similar structure: hub, bridge or periphery." },
  twins: { title: "Structural twins", note: "Nodes with the most similar pattern of links, anywhere in the network." },
};
let kind = "similar"; // stays the same for the next node

/** The section of similar nodes; `drawProfile(own, twin)` is called when both profiles are loaded. */
export function twinsSection(name, signal, drawProfile) {
  const cards = element("div", { class: "cards" });
  const reasons = element("div", { class: "why", "aria-live": "polite" });
  const note = element("p", { class: "note" });
  const section = element("section", { class: "twins" });
  const show = async () => {
    note.textContent = KINDS[kind].note;
    for (const button of switches.children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    try {
      await showTwins({ name, cards, reasons, signal, drawProfile });
    } catch (error) {
      if (error.name === "AbortError") return;
      const isSoon = error.status === 503;
      cards.replaceChildren(isSoon ? element("p", { class: "note wide" }, "All profiles are being compared for the first time …") : fault(error));
      if (isSoon) setTimeout(() => signal.aborted || show(), SOON);
    }
  };
  const switches = element("div", { class: "switches", role: "group", "aria-label": "Which nodes to compare it with" },
    offered().map((key) => element("button", {
      type: "button", "data-kind": key, onclick: () => { kind = key; show(); },
    }, KINDS[key].title)));
  section.append(element("h3", {}, "Similar nodes by"), switches, note, cards, reasons);
  show();
  return section;
}

/** Kinds of similarity to choose from; parts only if there are several. */
function offered() {
  const { parts } = state.network;
  return ["similar", ...(parts.length > 1 ? parts : []), "twins"];
}

/** The nodes to compare one with. */
const asked = (name, signal) => (kind === "twins" || kind === "similar"
  ? get(node(name, kind), { n: COUNT }, signal)
  : get(node(name, "similar"), { n: COUNT, by: kind }, signal));

async function showTwins({ name, cards, reasons, signal, drawProfile }) {
  const mine = kind;
  const draw = (one) => get(node(one, "neighborhood"), { radius: 2, most: 40 }, signal);
  const [found, own, profile] = await Promise.all([
    asked(name, signal), draw(name), get(node(name, "profile"), {}, signal),
  ]);
  if (mine !== kind) return;
  const names = found.matches.map((match) => match.name);
  state.twins = names;
  emit("twins");
  const listed = names.map((twin, at) => twinCard(twin, at));
  cards.replaceChildren(ownCard(name, own), ...listed.map((card) => card.element));
  if (!names.length) { reasons.replaceChildren(); drawProfile(profile, undefined); return; }
  const press = async (at) => {
    listed.forEach((card, place) => card.element.setAttribute("aria-pressed", String(place === at)));
    const explanation = await listed[at].explained;
    if (!explanation || mine !== kind) return;
    reasons.replaceChildren(why(name, names[at], explanation, mine));
    drawProfile(profile, { name: names[at], weights: explanation.profiles[1].filter((value) => value > 0) });
  };
  listed.forEach((card, at) => {
    card.element.addEventListener("click", () => press(at));
    card.element.addEventListener("dblclick", () => choose(names[at]));
    card.explained = get(node(name, "explain", names[at]), {}, signal).then((explanation) => { card.explain(explanation); return explanation; })
      .catch((error) => { if (error.name !== "AbortError") card.fail(error); });
    draw(names[at]).then((around) => card.draw(around)).catch((error) => error.name !== "AbortError" && card.fail(error));
  });
  press(0);
}

function ownCard(name, around) {
  return element("div", { class: "card own" }, ego(around),
    element("p", { class: "title" }, dot(name), element("b", {}, short(name, 24))), element("small", {}, size(around)));
}

function twinCard(twin, at) {
  const picture = element("div", { class: "blank" });
  const detail = element("small", {}, " ");
  const made = element("button", { type: "button", class: "card", "aria-pressed": "false" },
    element("span", { class: "number", "aria-hidden": "true" }, String(at + 1)), picture,
    element("span", { class: "title" }, dot(twin), element("b", {}, short(twin, 24))), detail);
  return {
    element: made,
    draw: (around) => picture.replaceChildren(ego(around)),
    fail: (error) => { detail.textContent = error.message; },
    explain: (explanation) => { detail.textContent = inShort(explanation); },
  };
}

function inShort(explanation) {
  const apart = explanation.relation.links_apart;
  const far = apart === null ? "not connected" : apart === 1 ? "linked" : `${apart} links apart`;
  if (kind === "twins") return `${far} · shape ${shown(explanation.profile_difference * 100)} % off`;
  const part = explanation.parts.find(({ name }) => name === kind);
  return `${far} · ${part ? `${kind} ${part.cosine.toFixed(2)}` : `similarity ${explanation.similarity.toFixed(2)}`}`;
}

function size(around) {
  const count = around.names.length - 1 + around.left_out;
  return `${shown(count)} within 2 links${around.left_out ? `, ${shown(around.left_out)} not drawn` : ""}`;
}
