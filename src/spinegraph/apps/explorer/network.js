// All nodes as columns: names, coordinates, roles, and columns to colour, size and filter the map by.

import { get, node } from "./api.js";
import { shown } from "./dom.js";

const STEPS = 8; // colours for numbers
export const NONE = "--c-none";

/** The nodes of one version, by index in its columns (`place`). */
export class Network {
  constructor(data) {
    Object.assign(this, {
      version: data.version, names: data.names, degree: data.degree, role: data.role, titles: data.titles,
      descriptions: data.descriptions, label: data.label, labels: data.labels, parts: data.parts, colors: data.colors,
      tableColumns: data.columns ?? [], groups: data.groups ?? {},
    });
    this.layouts = new Map([["all", { method: data.method, x: Float32Array.from(data.x), y: Float32Array.from(data.y) }]]);
    this.places = new Map(data.names.map((name, place) => [name, place]));
    this.loaded = new Map();
    this.show("all");
  }

  get size() { return this.names.length; }
  has(name) { return this.places.has(name); }
  place(name) { return this.places.get(name); }

  /** Load the map by a part of the vectors, unless its final version is loaded. */
  async layout(by) {
    if (this.layouts.get(by)?.method !== "t-SNE" && by !== "all") {
      const { method, x, y } = await get("/v1/layout", { by });
      this.layouts.set(by, { method, x: Float32Array.from(x), y: Float32Array.from(y) });
    }
    return this.layouts.get(by);
  }

  /** Use the coordinates of a loaded map. */
  show(by) {
    const { x, y } = this.layouts.get(by);
    Object.assign(this, { x, y });
  }

  /** The node named by a text: the text itself or the number in it. */
  named(text) {
    if (this.places.has(text)) return text;
    if (!/^-?\d{1,19}$/.test(text)) return undefined;
    return [Number(text), BigInt(text)].find((number) => this.places.has(number));
  }

  roleOf(name) {
    const place = this.places.get(name);
    return place === undefined || !this.role ? null : this.titles[this.role[place]];
  }

  labelOf(name) {
    const place = this.places.get(name);
    return place === undefined || !this.label || this.label[place] < 0 ? null : this.labels[this.label[place]];
  }

  /** Columns to colour, size and filter nodes by, in groups: [title, [[key, title], ...]]. */
  offered(chosen) {
    const parts = this.parts.length > 1 ? this.parts : [];
    return [
      ["", [["role", "role"], ...(this.label ? [["label", "label"]] : []), ["degree", "number of links"]]],
      ["Columns", this.tableColumns.map(({ name }) => [`column:${name}`, name])],
      ["Groups by a part", parts.filter((part) => this.groups[part]).map((part) => [`group:${part}`, `groups by ${part}`])],
      [chosen === null ? "" : `Similarity to ${chosen}`, chosen === null ? []
        : ["all", ...parts].map((part) => [`like:${part}:${chosen}`, part === "all" ? "all parts" : part])],
    ].filter(([, keys]) => keys.length);
  }

  /** The column of a key, loaded from the service if necessary. */
  async load(key) {
    if (!this.loaded.has(key)) {
      const [kind, rest] = [key.split(":", 1)[0], key.slice(key.indexOf(":") + 1)];
      if (kind === "column") {
        const data = await get(`/v1/columns/${encodeURIComponent(rest)}`);
        this.loaded.set(key, columnOf(rest, data.kind, data.values));
      } else if (kind === "like") {
        const [by, name] = [rest.split(":", 1)[0], rest.slice(rest.indexOf(":") + 1)];
        const data = await get(node(name, "likeness"), { by });
        this.loaded.set(key, columnOf(`${by === "all" ? "Similarity" : `Similarity by ${by}`} to ${name}`, "number", data.values));
      } else this.column(key);
    }
    return this.column(key);
  }

  /** A column that is loaded or needs no loading: { title, kind, values } or { title, kind, codes, levels }. */
  column(key) {
    if (!this.loaded.has(key) && /^(column|like):/.test(key)) throw new Error(`${key} is not read yet`);
    if (!this.loaded.has(key)) this.loaded.set(key, this.own(key));
    return this.loaded.get(key);
  }

  own(key) {
    if (key === "degree") return { title: "Links", kind: "number", values: Float64Array.from(this.degree) };
    if (key === "label" && this.label) return { title: "Label", kind: "category", codes: Int32Array.from(this.label), levels: this.labels };
    if (key.startsWith("group:") && this.groups[key.slice(6)]) {
      const codes = Int32Array.from(this.groups[key.slice(6)]);
      const count = codes.reduce((most, code) => Math.max(most, code), 0) + 1;
      return { title: `Groups by ${key.slice(6)}`, kind: "category", codes, isRanked: true,
        levels: Array.from({ length: count }, (_, at) => `group ${at + 1}`) };
    }
    return { title: "Role", kind: "category", isRanked: true, levels: this.titles,
      codes: this.role ? Int32Array.from(this.role) : new Int32Array(this.size).fill(-1) };
  }

  /** Groups of a loaded column with colours and counts; code[place] is a node's group. */
  coloring(key) {
    const column = this.column(key);
    column.coloring ??= column.codes ? byLevel(column, this.colors.length) : byNumber(column);
    return column.coloring;
  }

  /** Sizes of nodes by a column, 0.6 to 2.4 times the usual; rare categories are large. */
  sizes(key) {
    const column = this.column(key);
    this.coloring(key); // counts levels
    const values = column.values ?? Float64Array.from(column.codes, (code) => (code < 0 ? NaN : -column.counts[code]));
    const steps = thresholds(values, 10);
    return Float32Array.from(values, (one) => (Number.isNaN(one) ? 0.6 : 0.6 + (1.8 * steps.filter((step) => step <= one).length) / Math.max(steps.length, 1)));
  }

  /** The style sheet's variable for a node's colour; NONE for an unknown name. */
  color(key, name) {
    const place = this.places.get(name);
    if (place === undefined) return NONE;
    const { code, groups } = this.coloring(key);
    return groups[code[place]].color;
  }
}

/** A column of values: numbers and dates as numbers, anything else as categories. */
function columnOf(title, kind, values) {
  if (kind === "number" || kind === "date") {
    // Times without a time zone are UTC, as in the service.
    const read = kind === "date" ? (one) => Date.parse(/T[^Z+]*$/.test(one) ? `${one}Z` : one) : Number;
    return { title, kind, values: Float64Array.from(values, (one) => (one === null ? NaN : read(one))) };
  }
  const levels = [...new Set(values)].filter((one) => one !== null).sort();
  const number = new Map(levels.map((level, at) => [level, at]));
  return { title, kind: "category", levels, codes: Int32Array.from(values, (one) => number.get(one) ?? -1) };
}

/** A value of a column as text. */
export function written(column, place) {
  if (column.codes) return column.levels[column.codes[place]] ?? "";
  return Number.isNaN(column.values[place]) ? "" : writtenNumber(column, column.values[place]);
}

/** A number or date of a column as text. */
export const writtenNumber = ({ kind }, value) => (kind === "date" ? new Date(value).toISOString().replace(/T00:00:00.000Z$/, "") : String(value));

function byLevel(column, most) {
  const { codes, levels } = column;
  const counts = new Array(levels.length).fill(0);
  for (const code of codes) if (code >= 0) counts[code] += 1;
  column.counts = counts;
  const sorted = counts.map((_, code) => code).sort((a, b) => counts[b] - counts[a] || a - b);
  const own = sorted.slice(0, sorted.length > most ? most - 1 : most);
  const groups = own.map((code, rank) => ({ title: levels[code], color: `--c${column.isRanked ? code % most : rank}`, count: counts[code] }));
  const rank = new Int32Array(levels.length).fill(own.length);
  own.forEach((code, at) => { rank[code] = at; });
  const code = Uint8Array.from(codes, (one) => (one < 0 ? own.length : rank[one]));
  const rest = codes.length - groups.reduce((sum, group) => sum + group.count, 0);
  const title = sorted.length > own.length ? "others" : levels.length ? "none" : "not known yet";
  if (rest) groups.push({ title, color: NONE, count: rest });
  return { code, groups };
}

/** Quantiles that divide the values into equal shares; fewer if many values are equal. */
function thresholds(values, shares) {
  const sorted = values.filter((one) => !Number.isNaN(one)).sort();
  const found = Array.from({ length: shares - 1 }, (_, at) => sorted[Math.floor(((at + 1) * sorted.length) / shares)]);
  return [...new Set(found)].filter((one) => one > sorted[0]);
}

function byNumber(column) {
  const { values } = column;
  const steps = thresholds(values, STEPS);
  const code = Uint8Array.from(values, (one) => {
    let at = 0;
    while (at < steps.length && steps[at] <= one) at += 1;
    return Number.isNaN(one) ? steps.length + 1 : at;
  });
  const ends = Array.from({ length: steps.length + 2 }, () => [Infinity, -Infinity, 0]);
  code.forEach((at, place) => {
    ends[at] = [Math.min(ends[at][0], values[place]), Math.max(ends[at][1], values[place]), ends[at][2] + 1];
  });
  const text = (value) => (column.kind === "date" ? writtenNumber(column, value) : shown(value, 2));
  const groups = ends.map(([low, high, count], at) => (at > steps.length ? { title: "none", color: NONE, count }
    : { title: low === high ? text(low) : `${text(low)} to ${text(high)}`, count,
      color: `--d${steps.length ? Math.round((at * (STEPS - 1)) / steps.length) : STEPS - 1}` }));
  return { code, groups: groups.at(-1).count ? groups : groups.slice(0, -1) };
}
