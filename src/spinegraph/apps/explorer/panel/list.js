// The nodes in colour or selected, as a list, and the filters that determine which are in colour.

import { element, save, short, shown } from "../dom.js";
import { fault, goTo } from "../naming.js";
import { written, writtenNumber } from "../network.js";
import { emit, loaded, on, shownNodes, state } from "../state.js";

const LISTED = 100;
const COLUMNS = 60; // of the table, at most, in a CSV file

/** Build the panel; `map` selects the nodes in view. */
export function listPanel(root, map) {
  const filters = element("ul", { class: "picked" });
  const column = element("select", { id: "filter-column", onchange: () => ask().catch(failed) });
  const values = element("span", { class: "values" });
  const count = element("p", { id: "counted", role: "status" });
  const nodes = element("div", { class: "chips" });
  const said = element("div", {});
  const failed = (error) => said.replaceChildren(fault(error));
  const clear = element("button", { type: "button", class: "chip", onclick: () => { state.selected = null; emit("selected"); } }, "Clear the selection");

  /** Show inputs for the values of the column that pass. */
  async function ask() {
    values.replaceChildren();
    const key = column.value;
    if (!key) return;
    const read = await loaded(key);
    if (key !== column.value) return;
    const add = async (filter) => {
      await loaded(key);
      state.filters.push({ key, ...filter });
      column.value = "";
      values.replaceChildren();
      emit("filters");
    };
    if (read.codes) {
      values.append(element("select", { "aria-label": `Value of ${read.title}`, id: "filter-level", onchange: ({ target }) => add({ level: target.value }) },
        element("option", { value: "", selected: true, disabled: true }, "is …"), read.levels.map((level) => element("option", { value: level }, short(level, 40)))));
      return;
    }
    const known = read.values.filter((one) => !Number.isNaN(one));
    const ends = [known.reduce((least, one) => Math.min(least, one), Infinity), known.reduce((most, one) => Math.max(most, one), -Infinity)];
    const [low, high] = ends.map((end, at) => element("input", {
      type: read.kind === "date" ? "date" : "number", step: "any", id: `filter-${at ? "to" : "from"}`, "aria-label": at ? "To" : "From",
      value: read.kind === "date" ? writtenNumber(read, end).slice(0, 10) : end,
    }));
    const number = (input, otherwise) => (input.value === "" ? otherwise : read.kind === "date" ? Date.parse(input.value) : Number(input.value));
    const day = read.kind === "date" ? 86_399_999 : 0; // so that the last day is included
    values.append(low, " to ", high, element("button", { type: "button", class: "chip", id: "filter-add",
      onclick: () => add({ low: number(low, -Infinity), high: number(high, Infinity) + day }) }, "Filter"));
  }

  function words({ key, level, low, high }) {
    const read = state.network.column(key);
    return read.codes ? `${read.title}: ${level}` : `${read.title}: ${[low, high].map((one) => writtenNumber(read, one).slice(0, 10)).join(" to ")}`;
  }

  /** Indices of the nodes in the list. */
  function listed() {
    const inColor = shownNodes();
    const all = state.selected ? [...state.selected] : Array.from(inColor, (_, place) => place);
    return all.filter((place) => inColor[place]);
  }

  function show() {
    if (root.hidden || !state.network) return;
    const { network } = state;
    const places = listed();
    column.replaceChildren(element("option", { value: "" }, "a column …"), ...network.offered(state.chosen).flatMap(([, entries]) =>
      entries.map(([key, title]) => element("option", { value: key }, short(title, 40)))));
    filters.replaceChildren(...state.filters.map((filter, at) => element("li", {}, element("span", {}, short(words(filter), 50)),
      element("button", { type: "button", class: "remove", "aria-label": `Remove the filter ${words(filter)}`,
        onclick: () => { state.filters.splice(at, 1); emit("filters"); } }, "×"))));
    count.textContent = `${shown(places.length)} of ${shown(network.size)} nodes ${state.selected ? "selected" : "in colour"}` +
      (places.length > LISTED ? `, the first ${LISTED}:` : "");
    nodes.replaceChildren(...places.slice(0, LISTED).map((place) => goTo(network.names[place])));
    clear.hidden = !state.selected;
  }

  async function table() {
    const { network } = state;
    const keys = network.offered(null).flatMap(([, entries]) => entries.map(([key]) => key));
    const some = keys.filter((key) => !key.startsWith("column:") || network.tableColumns.length <= COLUMNS);
    const columns = await Promise.all(some.map((key) => network.load(key)));
    const line = (fields) => fields.map((field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(",");
    const rows = listed().map((place) => line([String(network.names[place]), ...columns.map((one) => written(one, place))]));
    return [line(["name", ...columns.map((one, at) => (some[at].startsWith("column:") ? one.title : one.title.toLowerCase()))]), ...rows].join("\r\n");
  }

  root.replaceChildren(
    element("h2", {}, "Nodes"),
    element("p", { class: "note" }, "Filter nodes by any column, or select some on the map: choose Box or Lasso and drag, or hold shift and drag."),
    element("div", { class: "row filter" }, element("label", { for: "filter-column" }, "Only where"), column, values), filters,
    count,
    element("div", { class: "chips" },
      element("button", { type: "button", class: "main", id: "save-csv",
        onclick: () => table().then((text) => save(new Blob([`${text}\r\n`], { type: "text/csv" }), "nodes.csv")).catch(failed) }, "Save as CSV"),
      element("button", { type: "button", class: "chip", id: "select-seen", onclick: () => map.select() }, "Select the nodes in view"), clear),
    said, nodes);
  for (const event of ["network", "coloring", "muted", "filters", "selected", "tab"]) on(event, show);
}
