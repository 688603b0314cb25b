// The result for a hypothetical node: its role, the nodes it would be similar to and why, and warnings.

import { get, node } from "../api.js";
import { element, short, shown } from "../dom.js";
import { about, dot, goTo } from "../naming.js";
import { choose, state } from "../state.js";
import { ego } from "./ego.js";

const DRAWN = 3;
const BY_PART = { content: "By content", place: "By place", role: "By role" };

/** The answer of /embed for one node. */
export function landing(found) {
  const [first] = found.nearest;
  const drawn = found.nearest.slice(0, DRAWN).map(card);
  const others = found.nearest.slice(DRAWN).map((match) => goTo(match.name, match.score.toFixed(2)));
  return element("div", {},
    element("h3", {}, "It would be"),
    element("div", { id: "would-be" }, role(found.role), majority(found.nearest)),
    first && element("p", { id: "lands" }, "It lands near ", element("b", {}, short(first.name, 40)), about(first.name) && ` (${about(first.name)})`,
      `, with a similarity of ${first.score.toFixed(2)}.`),
    found.warnings.map((words) => element("p", { class: "caution" }, words)),
    element("h3", {}, "Why"),
    element("ul", { id: "reasons" },
      Object.entries(found.nearest_by_part ?? {}).map(([part, match]) => element("li", {}, `${BY_PART[part]} it is most like `,
        element("button", { type: "button", class: "link", onclick: () => choose(match.name) }, short(match.name, 40)), ` (${match.score.toFixed(2)}).`)),
      (found.words ?? []).map((sentence) => element("li", {}, sentence))),
    element("h3", {}, "Most like it"),
    element("div", { class: "cards" }, drawn), element("div", { class: "chips" }, others));
}

function role(found) {
  if (!found) return element("p", { class: "note" }, "Computing roles …");
  const share = found.memberships[found.role];
  return element("p", {}, element("b", {}, found.title), ` (${shown(share * 100)} %) — ${found.description}`);
}

/** The most frequent value among the nearest nodes, in the column that colours the map. */
function majority(nearest) {
  const { network, coloring } = state;
  const column = network.column(coloring);
  if (!column.codes || coloring === "role" || !nearest.length) return null;
  const counts = new Map();
  for (const { name } of nearest) {
    const level = column.levels[column.codes[network.place(name)]];
    if (level !== undefined) counts.set(level, (counts.get(level) ?? 0) + 1);
  }
  const [best] = [...counts].sort((a, b) => b[1] - a[1]);
  return best ? element("p", {}, `${column.title}: `, element("b", {}, best[0]), `, as ${best[1]} of the ${nearest.length} nodes most like it.`) : null;
}

function card(match) {
  const picture = element("div", { class: "blank" });
  get(node(match.name, "neighborhood"), { radius: 2, most: 40 }).then((around) => picture.replaceChildren(ego(around)))
    .catch((error) => { picture.textContent = error.message; });
  return element("button", { type: "button", class: "card", title: "Go to this node", onclick: () => choose(match.name) },
    picture, element("span", { class: "title" }, dot(match.name), element("b", {}, short(match.name, 20))),
    element("small", {}, `similarity ${match.score.toFixed(2)}`));
}
