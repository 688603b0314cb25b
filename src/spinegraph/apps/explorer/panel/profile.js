// A profile as bars, with another one as a stepped line.

import { drawn, element, short, shown } from "../dom.js";

const [WIDE, HIGH, LEFT, LOW] = [520, 150, 36, 20];
const LEAST = 0.001;

// Values span orders of magnitude and DTW compares ratios, so the axis is logarithmic.
const height = (value) => ((Math.log10(Math.max(value, LEAST)) - Math.log10(LEAST)) / -Math.log10(LEAST)) * (HIGH - LOW - 8);

/** Draw the profile of a node, and of its twin if given. */
export function profile(own, twin) {
  const count = Math.max(own.weights.length, twin?.weights.length ?? 0);
  const step = (WIDE - LEFT) / Math.max(count, 1);
  const ground = HIGH - LOW;
  const ticks = [1, 0.1, 0.01, 0.001].map((value) => drawn("g", { class: "tick" },
    drawn("line", { x1: LEFT, x2: WIDE, y1: ground - height(value), y2: ground - height(value) }),
    drawn("text", { x: LEFT - 5, y: ground - height(value) + 4, "text-anchor": "end" }, `${value * 100}%`)));
  const bars = own.weights.map((value, place) => drawn("rect", {
    x: LEFT + place * step + step * 0.14, width: step * 0.72, y: ground - height(value), height: height(value), class: "bar",
  }, drawn("title", {}, `${place + 1}. ${short(own.nodes?.[place] ?? "", 60)}: ${shown(value * 100, 2)} %`)));
  const path = (twin?.weights ?? []).map((value, place) => {
    const y = ground - height(value);
    return `${place ? "L" : "M"}${LEFT + place * step},${y}H${LEFT + (place + 1) * step}`;
  }).join("");
  const foot = [drawn("text", { x: LEFT, y: HIGH - 5 }, "nearest"),
    drawn("text", { x: WIDE, y: HIGH - 5, "text-anchor": "end" }, `${count}th`)];
  const label = twin ? "Profiles of the node (bars) and its twin (line)" : "Profile of the node";
  return drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "profile", role: "img", "aria-label": label },
    ticks, bars, path && drawn("path", { d: path, class: "twin-line" }), foot);
}

/** The key to bars and line. */
export function profileKey(own, twin) {
  return element("p", { class: "key" },
    element("span", { class: "swatch bar" }), short(own, 24),
    twin !== undefined && [element("span", { class: "swatch line" }), short(twin, 24)]);
}
