// Why two nodes are similar: the service's sentences, and the shares of the parts.

import { element, short, shown } from "../dom.js";
import { choose } from "../state.js";

const PARTS = { content: "--c0", place: "--c2", role: "--c4" };

/** The explanation of a pair; for structural twins the sentence on structure comes first. */
export function why(name, twin, explanation, kind) {
  const words = kind === "twins" ? [explanation.words.at(-1), ...explanation.words.slice(0, -1)] : explanation.words;
  const title = kind === "twins" ? `Why ${short(twin, 24)} is a twin of ${short(name, 24)}` : `Why ${short(twin, 24)} is like ${short(name, 24)}`;
  const go = element("button", { type: "button", class: "link", onclick: () => choose(twin) }, `Go to ${short(twin, 24)}`);
  return element("div", {}, element("div", { class: "row" }, element("h4", {}, title), go),
    element("ul", {}, words.map((sentence) => element("li", {}, sentence))), shares(explanation));
}

function shares(explanation) {
  const parts = explanation.parts.filter((part) => part.share > 0.005);
  if (!parts.length) return null;
  const label = parts.map((part) => `${part.name} ${shown(part.share, 2)}`).join(", ");
  return element("div", { class: "parts" },
    element("div", { class: "shares", role: "img", "aria-label": `Similarity by parts: ${label}` },
      parts.map((part) => element("span", { style: { "flex-grow": String(part.share), "--dot": `var(${PARTS[part.name] ?? "--c-none"})` } })),
      element("span", { class: "rest", style: { "flex-grow": String(Math.max(0, 1 - explanation.similarity)) } })),
    element("p", { class: "note" }, parts.map((part) => [
      element("i", { class: "dot", style: { "--dot": `var(${PARTS[part.name] ?? "--c-none"})` } }), `${part.name} ${part.share.toFixed(2)} `,
    ]), `of 1`));
}
