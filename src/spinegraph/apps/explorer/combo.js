// A text field with suggestions: the combobox pattern, by keyboard and by pointer.

import { element, short } from "./dom.js";

let made = 0;

/**
 * Give an input a list of suggestions.
 *
 * `suggest(text)` returns (a promise of) { offers: [{ value, title, detail, color }], more }; `choose(value)` is called with the chosen one.
 * Enter without a marked suggestion chooses the first.
 */
export function combo(input, { suggest, choose, wait = 120 }) {
  made += 1;
  const list = element("ul", { id: `offers-${made}`, role: "listbox", class: "offers", hidden: true, "aria-label": "Suggestions" });
  let [offers, marked, timer, asked, isLate] = [[], -1, 0, 0, false];
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-controls": list.id, "aria-expanded": "false", "aria-autocomplete": "list",
  })) input.setAttribute(name, value);

  function close() {
    asked += 1;
    clearTimeout(timer);
    [list.hidden, marked] = [true, -1];
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(place) {
    marked = place;
    [...list.children].forEach((child, at) => child.setAttribute("aria-selected", String(at === place)));
    const child = list.children[place];
    if (!child) { input.removeAttribute("aria-activedescendant"); return; }
    input.setAttribute("aria-activedescendant", child.id);
    child.scrollIntoView({ block: "nearest" });
  }

  function take(offer) {
    close();
    isLate = false;
    choose(offer.value);
  }

  function show(found) {
    offers = found.offers;
    list.replaceChildren(...offers.map((offer, at) => element("li", {
      role: "option", id: `${list.id}-${at}`, "aria-selected": "false",
      onpointerdown: (event) => { event.preventDefault(); take(offer); },
    }, offer.color && element("i", { class: "dot", style: { "--dot": `var(${offer.color})` } }),
    element("span", {}, short(offer.title, 48)), offer.detail && element("small", {}, offer.detail))));
    const note = offers.length ? found.more : "no matches";
    if (note) list.append(element("li", { class: "note", role: "presentation" }, note));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(-1);
    if (isLate && offers.length) take(offers[0]);
  }

  async function ask() {
    const mine = (asked += 1);
    const text = input.value.trim();
    if (!text) { close(); return; }
    try {
      const found = await suggest(text);
      if (mine === asked) show(found);
    } catch (error) {
      if (mine === asked) show({ offers: [], more: error.message });
    }
  }

  input.addEventListener("input", () => {
    isLate = false;
    clearTimeout(timer);
    timer = setTimeout(ask, wait);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.hidden) ask();
    else if (step && offers.length) mark((marked + step + offers.length) % offers.length);
    else if (event.key === "Enter" && !list.hidden && offers.length) take(offers[Math.max(marked, 0)]);
    else if (event.key === "Enter" && input.value.trim()) { isLate = true; clearTimeout(timer); ask(); }
    else if (event.key === "Escape" && !list.hidden) { close(); event.stopPropagation(); }
    else return;
    event.preventDefault();
  });
}
