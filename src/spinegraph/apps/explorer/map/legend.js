// The legend of the colours; a group's button dims it or, with shift, all others.

import { element, shown, short } from "../dom.js";
import { emit, on, state } from "../state.js";

/** Keep the legend up to date. */
export function legend(root) {
  const show = () => {
    root.replaceChildren(...content());
    root.dataset.key = state.coloring;
  };
  on("network", show);
  on("coloring", show);
  on("muted", show);
}

function content() {
  const { network, coloring, muted } = state;
  const { groups } = network.coloring(coloring);
  const { title } = network.column(coloring);
  const listed = groups.map((group, at) => group.count ? entry(group, at, muted) : null);
  return [element("h2", {}, short(title, 40)), element("ul", {}, listed)];
}

function entry(group, at, muted) {
  const press = (event) => {
    const others = state.network.coloring(state.coloring).groups.map((_, place) => place).filter((place) => place !== at);
    if (event.shiftKey) state.muted = new Set(others.every((place) => muted.has(place)) ? [] : others);
    else if (!muted.delete(at)) muted.add(at);
    emit("muted");
    document.querySelector(`#legend [data-group="${at}"]`)?.focus();
  };
  const about = `${group.title}: ${shown(group.count)} nodes. Click to dim it, or shift-click to dim all others.`;
  return element("li", {}, element("button",
    { type: "button", "aria-pressed": String(!muted.has(at)), "data-group": at, title: about, onclick: press },
    element("i", { class: "dot", style: { "--dot": `var(${group.color})` } }),
    element("span", {}, short(group.title, 28)), element("small", {}, shown(group.count))));
}
