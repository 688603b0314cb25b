// Elements from plain values. Text is always inserted as text: no code of the explorer parses markup.

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

/** A number as text, with thousands separators and at most some decimal places. */
export const shown = (number, digits = 0) => number.toLocaleString("en", { maximumFractionDigits: digits });

/** Text cut to a maximum length. */
export function short(text, most = 40) {
  const letters = Array.from(String(text));
  return letters.length <= most ? String(text) : `${letters.slice(0, most - 1).join("")}…`;
}

/** A colour of the style sheet as [red, green, blue], 0 to 255. */
export function rgb(variable) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  return [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
}

const luminance = (color) => color.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);

/** Set the colours of groups, each moved towards the ink until its contrast with the ground is 3 to 1. */
export function setColors(colors) {
  const [ground, ink] = [rgb("--ground"), rgb("--ink")];
  const contrast = (color) => {
    const [low, high] = [luminance(color), luminance(ground)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  colors.forEach((text, at) => {
    let color = [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
    while (contrast(color) < 3.05) color = color.map((one, axis) => Math.round(one + (ink[axis] - one) * 0.06 + Math.sign(ink[axis] - one) * 0.5));
    document.documentElement.style.setProperty(`--c${at}`, `#${color.map((one) => one.toString(16).padStart(2, "0")).join("")}`);
  });
}

/** Let the browser save a blob under a name. */
export function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
