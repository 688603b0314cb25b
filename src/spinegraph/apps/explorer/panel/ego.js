// A drawing of the small network around a node: rings of one step and two.

import { drawn, short, shown } from "../dom.js";
import { about, colorOf } from "../naming.js";
import { choose } from "../state.js";

const SIDE = 200;

/** Draw the answer of /neighborhood; the node itself has a ring. */
export function ego(around) {
  const middle = (values) => (Math.min(...values) + Math.max(...values)) / 2;
  const [x, y] = [middle(around.x), middle(around.y)];
  const reach = Math.max(1, ...around.x.map((one) => Math.abs(one - x)), ...around.y.map((one) => Math.abs(one - y)));
  const scale = (SIDE / 2 - 12) / reach;
  const at = (place) => [SIDE / 2 + (around.x[place] - x) * scale, SIDE / 2 - (around.y[place] - y) * scale];
  const many = around.names.length > 25;
  const radius = (place) => (around.hops[place] === 0 ? 7.5 : around.hops[place] === 1 ? 5.2 : many ? 3 : 3.8);
  const links = around.edges.map(([one, other]) => {
    const [[x1, y1], [x2, y2]] = [at(one), at(other)];
    return drawn("line", { x1, y1, x2, y2, class: around.hops[one] && around.hops[other] ? "far" : "near" });
  });
  // The root is drawn last, and its direct neighbours above other nodes.
  const order = around.names.map((_, place) => place).sort((a, b) => around.hops[b] - around.hops[a]);
  const nodes = order.map((place) => circle(around, place, at(place), radius(place)));
  const count = around.names.length - 1;
  const label = `${short(around.name, 60)} and ${shown(count)} nodes around it` +
    (around.left_out ? `, ${shown(around.left_out)} more not drawn` : "");
  return drawn("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "ego", role: "img", "aria-label": label }, links, nodes);
}

function circle(around, place, [cx, cy], r) {
  const name = around.names[place];
  const made = drawn("circle", { cx, cy, r, class: `hop-${around.hops[place]}`, "data-recolor": true },
    drawn("title", {}, [short(name, 60), about(name), `${shown(around.degrees[place])} links`].filter(Boolean).join("\n")));
  made.recolor = () => made.style.setProperty("fill", `var(${colorOf(name)})`);
  made.recolor();
  if (place) made.addEventListener("click", (event) => { event.stopPropagation(); choose(name); });
  return made;
}
