// Suggestions of node names, and small elements that show a node.

import { get } from "./api.js";
import { element, short, shown } from "./dom.js";
import { choose, state } from "./state.js";

/** Names that contain a text, as suggestions for a combo. */
export async function nodesNamed(text) {
  const { names, total } = await get("/v1/search", { q: text, n: 12 });
  const offers = names.map((name) => ({ value: name, title: String(name), detail: about(name), color: colorOf(name) }));
  return { offers, more: total > names.length ? `${shown(total - names.length)} more: keep typing` : "" };
}

/** Role and label. */
export function about(name) {
  const { network } = state;
  return [network.roleOf(name), network.labelOf(name)].filter(Boolean).join(" · ");
}

export const colorOf = (name) => state.network.color(state.coloring, name);

/** A dot in a node's colour, which `recolor` updates. */
export function dot(name) {
  const made = element("i", { class: "dot", "data-recolor": true });
  made.recolor = () => made.style.setProperty("--dot", `var(${colorOf(name)})`);
  made.recolor();
  return made;
}

/** A button that opens a node. */
export function goTo(name, detail = "") {
  return element("button", { type: "button", class: "chip", title: about(name) || undefined, onclick: () => choose(name) },
    dot(name), element("span", {}, short(name, 30)), detail && element("small", {}, detail));
}

/** Update all colours within an element. */
export function recolor(root) {
  for (const one of root.querySelectorAll("[data-recolor]")) one.recolor();
}

/** An error message. */
export const fault = (error) => element("p", { class: "fault", role: "alert" }, error.message);
