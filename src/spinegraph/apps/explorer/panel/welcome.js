// The panel before a node is chosen: what the map is, the roles, and where to start.

import { element, shown } from "../dom.js";
import { goTo } from "../naming.js";
import { state } from "../state.js";

/** Introduce the page. */
export function welcome() {
  const { network } = state;
  return element("div", { class: "welcome" },
    element("h2", {}, "A map of similar nodes"),
    element("p", {}, "Every point is a node, and similar nodes are close to each other. Choose one to see its columns, the nodes most like it ",
      "by content, place or role, and why. Colour, filter and select nodes, or try a new one."),
    element("h3", {}, "Start with"), element("div", { class: "chips" }, beginnings(network).map(([name, words]) => goTo(name, words))),
    roles(network),
    element("h3", {}, "Keys"),
    element("dl", { class: "keys" }, [["/", "find a node"], ["Tab", "go to the next part of the page; the map has its own keys"],
      ["Esc", "close the node"]].flatMap(([key, words]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, words)])));
}

function roles(network) {
  if (!network.role) return element("p", { class: "note", role: "status" }, "Roles are being computed and will appear here.");
  const { groups } = network.coloring("role");
  const entries = groups.filter((group) => network.titles.includes(group.title)).map((group) => element("li", {},
    element("p", { class: "title" }, element("i", { class: "dot", style: { "--dot": `var(${group.color})` } }),
      element("b", {}, group.title), element("small", {}, `${shown(group.count)} ${group.count === 1 ? "node" : "nodes"}`)),
    element("p", { class: "note" }, network.descriptions[network.titles.indexOf(group.title)])));
  return [element("h3", {}, "Roles in this network"), element("ul", { class: "roles" }, entries)].reduce(
    (whole, part) => { whole.append(part); return whole; }, element("div", {}));
}

// The nodes with the most links, one of each role.
function beginnings(network) {
  const best = new Map();
  network.degree.forEach((degree, place) => {
    const role = network.role ? network.role[place] : 0;
    if (degree > (network.degree[best.get(role)] ?? -1)) best.set(role, place);
  });
  return [...best.values()].sort((a, b) => network.degree[b] - network.degree[a]).slice(0, 5)
    .map((place) => [network.names[place], `${shown(network.degree[place])} links`]);
}
