// The panel of the chosen node: its role, table row, twins, profile and neighbours.

import { get, node } from "../api.js";
import { element, shown } from "../dom.js";
import { dot, fault, goTo, recolor } from "../naming.js";
import { emit, on, state } from "../state.js";
import { profile, profileKey } from "./profile.js";
import { twinsSection } from "./twins.js";
import { welcome } from "./welcome.js";

const NEIGHBORS = 60;

/** Build the panel and keep it up to date. */
export function nodePanel(root) {
  let leave = new AbortController();
  const show = () => {
    leave.abort();
    leave = new AbortController();
    if (!state.network) return;
    if (state.chosen === null) root.replaceChildren(welcome());
    else showNode(root, state.chosen, leave.signal);
    root.parentElement.scrollTop = 0;
  };
  on("chosen", show);
  on("network", () => {
    if (state.chosen === null) { show(); return; }
    recolor(root);
    const part = root.querySelector(".role.waiting");
    if (part) showRole(part, state.chosen, leave.signal).catch((error) => part.replaceChildren(fault(error)));
  });
  on("coloring", () => recolor(root));
}

function showNode(root, name, signal) {
  const parts = {
    role: element("div", { class: "role" }), row: element("div", {}), profile: element("div", {}), near: element("div", { class: "chips" }),
  };
  const twins = twinsSection(name, signal, (own, twin) => drawProfile(parts.profile, own, twin));
  root.replaceChildren(heading(name), parts.role, parts.row, twins,
    section("Profile", "How likely walks from the node end at each node, most likely first; twins have similar profiles.", parts.profile),
    section("Linked to", "", parts.near));
  const during = (part, work) => work.catch((error) => error.name !== "AbortError" && part.replaceChildren(fault(error)));
  during(parts.role, showRole(parts.role, name, signal));
  during(parts.row, showRow(parts.row, name, signal));
  during(parts.near, showNeighbors(parts.near, name, signal));
}

function heading(name) {
  const { network } = state;
  const place = network.place(name);
  const label = network.labelOf(name);
  const degree = network.degree[place];
  return element("div", { class: "name" },
    element("h2", {}, dot(name), String(name)),
    element("p", {}, [`${shown(degree)} ${degree === 1 ? "link" : "links"}`, label && `label: ${label}`].filter(Boolean).join(" · ")));
}

const section = (title, note, ...content) =>
  element("section", {}, element("h3", {}, title), note && element("p", { class: "note" }, note), ...content);

async function showRole(part, name, signal) {
  part.classList.toggle("waiting", !state.network.role);
  if (!state.network.role) { part.replaceChildren(element("p", { class: "note" }, "Computing roles …")); return; }
  const role = await get(node(name, "role"), {}, signal);
  const most = role.memberships.map((share, at) => [share, at]).sort((a, b) => b[0] - a[0]).filter(([share]) => share > 0.02);
  const colors = state.network.coloring("role").groups;
  const color = (title) => colors.find((group) => group.title === title)?.color ?? "--c-none";
  part.replaceChildren(element("div", {},
    element("p", {}, element("strong", {}, role.title), " — ", role.description),
    element("div", { class: "shares", role: "img", "aria-label": most.map(([share, at]) => `${role.titles[at]} ${shown(share * 100)} %`).join(", ") },
      most.map(([share, at]) => element("span", {
        style: { "flex-grow": String(share), "--dot": `var(${color(role.titles[at])})` },
        title: `${role.titles[at]}: ${shown(share * 100)} %`,
      }))),
    most.length > 1 && element("p", { class: "note" }, most.map(([share, at]) => `${role.titles[at]} ${shown(share * 100)} %`).join(" · "))));
}

/** The node's row of the table; clicking a column's name colours the map by it. */
async function showRow(part, name, signal) {
  const answer = await get(node(name, "row"), {}, signal);
  const value = (one) => (one === null ? element("span", { class: "note" }, "missing") : typeof one === "number" ? shown(one, 6) : one);
  const lines = Object.entries(answer.row).map(([column, one]) => element("tr", {},
    element("th", { scope: "row" }, element("button", { type: "button", class: "link", title: `Colour the map by ${column}`,
      onclick: () => emit("color", `column:${column}`) }, column)), element("td", {}, value(one))));
  const lost = answer.lost.length && element("p", { class: "note" },
    `Not stored in the model: ${answer.lost.slice(0, 8).join(", ")}. Use spine explore MODEL --table FILE to show the whole table.`);
  if (lines.length || lost) part.replaceChildren(section("Table row", "", lines.length ? element("table", { class: "columns" }, lines) : null, lost || null));
}

async function showNeighbors(part, name, signal) {
  const around = await get(node(name, "neighborhood"), { radius: 1, most: NEIGHBORS + 1 }, signal);
  const names = around.names.filter((_, at) => around.hops[at] === 1);
  state.neighbors = names;
  emit("twins");
  const more = around.left_out ? [element("span", { class: "note" }, `and ${shown(around.left_out)} more`)] : [];
  const chips = names.map((other) => goTo(other, shown(state.network.degree[state.network.place(other)] ?? 0)));
  part.replaceChildren(...(names.length ? [...chips, ...more] : [element("p", { class: "note" }, "no nodes")]));
}

function drawProfile(part, own, twin) {
  part.replaceChildren(profile(own, twin), profileKey(own.name, twin?.name));
}
