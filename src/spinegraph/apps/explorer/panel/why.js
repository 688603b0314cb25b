// Why two nodes are alike: the service's sentences, and the shares that they speak of.

import { element, short, shown } from "../dom.js";
import { choose } from "../state.js";

const PARTS = { content: "--c0", place: "--c2", role: "--c4" };

/** Reasons for a twin, those of its role first where that is what makes it a twin. */
export function why(name, twin, told, kind) {
  const words = kind === "twins" ? [told.words.at(-1), ...told.words.slice(0, -1)] : told.words;
  const title = kind === "twins" ? `Why ${short(twin, 24)} is a twin of ${short(name, 24)}` : `Why ${short(twin, 24)} is like ${short(name, 24)}`;
  const go = element("button", { type: "button", class: "link", onclick: () => choose(twin) }, `Go to ${short(twin, 24)}`);
  return element("div", {}, element("div", { class: "row" }, element("h4", {}, title), go),
    element("ul", {}, words.map((sentence) => element("li", {}, sentence))), shares(told));
}

function shares(told) {
  const parts = told.parts.filter((part) => part.share > 0.005);
  if (!parts.length) return null;
  const label = parts.map((part) => `${part.name} ${shown(part.share, 2)}`).join(", ");
  return element("div", { class: "parts" },
    element("div", { class: "shares", role: "img", "aria-label": `Similarity by parts: ${label}` },
      parts.map((part) => element("span", { style: { "flex-grow": String(part.share), "--dot": `var(${PARTS[part.name] ?? "--c-none"})` } })),
      element("span", { class: "rest", style: { "flex-grow": String(Math.max(0, 1 - told.similarity)) } })),
    element("p", { class: "note" }, parts.map((part) => [
      element("i", { class: "dot", style: { "--dot": `var(${PARTS[part.name] ?? "--c-none"})` } }), `${part.name} ${part.share.toFixed(2)} `,
    ]), `of 1`));
}
