// Elements from plain values. Text always goes in as text: nothing here, or anywhere, parses markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [property, set] of Object.entries(value)) made.style.setProperty(property, set);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** An HTML element; `on...` attributes are listeners, `style` an object of properties. */
export const element = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

/** An SVG element. */
export const drawn = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

/** A number with at most some digits after the point, thousands apart. */
export const shown = (number, digits = 0) => number.toLocaleString("en", { maximumFractionDigits: digits });

/** Text of a bounded length. */
export function short(text, most = 40) {
  const letters = Array.from(String(text));
  return letters.length <= most ? String(text) : `${letters.slice(0, most - 1).join("")}…`;
}

/** A colour of the style sheet as [red, green, blue], 0 to 255. */
export function rgb(variable) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  return [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
}
