// Where a hypothetical node lands: whom it would be like, and what is odd about it.

import { get, node } from "../api.js";
import { element, short } from "../dom.js";
import { about, dot, goTo } from "../naming.js";
import { choose } from "../state.js";
import { ego } from "./ego.js";

const DRAWN = 3;

/** What /embed told of one node. */
export function landing(found) {
  const [first] = found.nearest;
  const among = first && about(first.name);
  const drawn = found.nearest.slice(0, DRAWN).map(card);
  const others = found.nearest.slice(DRAWN).map((match) => goTo(match.name, match.score.toFixed(2)));
  return element("div", {},
    element("h3", {}, "Would be most like"),
    first && element("p", { id: "lands" }, "It lands near ", element("b", {}, short(first.name, 40)), among && ` (${among})`,
      `, with a similarity of ${first.score.toFixed(2)}.`),
    found.warnings.map((words) => element("p", { class: "caution" }, words)),
    element("div", { class: "cards" }, drawn), element("div", { class: "chips" }, others));
}

function card(match) {
  const picture = element("div", { class: "blank" });
  get(node(match.name, "neighborhood"), { radius: 2, most: 40 }).then((around) => picture.replaceChildren(ego(around)))
    .catch((error) => { picture.textContent = error.message; });
  return element("button", { type: "button", class: "card", title: "Go to this node", onclick: () => choose(match.name) },
    picture, element("span", { class: "title" }, dot(match.name), element("b", {}, short(match.name, 20))),
    element("small", {}, `similarity ${match.score.toFixed(2)}`));
}
