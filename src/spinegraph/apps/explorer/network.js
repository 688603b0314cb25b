// All nodes as columns: names, places, degrees, roles, labels.

export const COLORS = 12; // groups with a colour of their own
export const STEPS = 8; // of the colours of degrees
export const NONE = "--c-none";

/** The nodes of one version, by place in its columns. */
export class Network {
  constructor(told) {
    Object.assign(this, {
      version: told.version, method: told.method, names: told.names, degree: told.degree,
      role: told.role, titles: told.titles, descriptions: told.descriptions, label: told.label, labels: told.labels,
      parts: told.parts,
    });
    this.x = Float32Array.from(told.x);
    this.y = Float32Array.from(told.y);
    this.places = new Map(told.names.map((name, place) => [name, place]));
    this.colorings = new Map();
  }

  get size() { return this.names.length; }
  has(name) { return this.places.has(name); }
  place(name) { return this.places.get(name); }

  /** The node that a text names: the text itself or the number it writes. */
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

  /** What nodes may be coloured by. */
  get offered() {
    return ["role", ...(this.label ? ["label"] : []), "degree"];
  }

  /** Groups, colours and counts of a coloring; code[place] is a node's group. */
  coloring(kind) {
    if (!this.colorings.has(kind)) this.colorings.set(kind, this.made(kind));
    return this.colorings.get(kind);
  }

  made(kind) {
    if (kind === "degree") return byDegree(this.degree);
    if (kind === "label" && this.label) return byGroup(this.label, this.labels);
    return this.role ? byGroup(this.role, this.titles) : byGroup(this.names.map(() => -1), []);
  }

  /** The style sheet's variable for a node's colour; a name that is not here has none. */
  color(kind, name) {
    const place = this.places.get(name);
    if (place === undefined) return NONE;
    const { code, groups } = this.coloring(kind);
    return groups[code[place]].color;
  }
}

function byGroup(numbers, titles) {
  const counts = new Array(titles.length).fill(0);
  for (const number of numbers) if (number >= 0) counts[number] += 1;
  const sorted = counts.map((count, number) => number).sort((a, b) => counts[b] - counts[a] || a - b);
  const own = sorted.slice(0, sorted.length > COLORS ? COLORS - 1 : COLORS);
  const groups = own.map((number, place) => ({ title: titles[number], color: `--c${place}`, count: counts[number] }));
  const place = new Map(own.map((number, at) => [number, at]));
  const code = Uint8Array.from(numbers, (number) => place.get(number) ?? own.length);
  const rest = numbers.length - groups.reduce((sum, group) => sum + group.count, 0);
  const title = sorted.length > own.length ? "others" : titles.length ? "none" : "not known yet";
  if (rest) groups.push({ title, color: NONE, count: rest });
  return { code, groups };
}

function byDegree(degree) {
  let most = 1;
  for (const one of degree) most = Math.max(most, one);
  const step = (one) => Math.min(STEPS - 1, Math.floor((Math.log2(one + 1) / Math.log2(most + 1)) * STEPS));
  const code = Uint8Array.from(degree, step);
  const ends = Array.from({ length: STEPS }, () => [Infinity, -Infinity, 0]);
  code.forEach((at, place) => {
    ends[at][0] = Math.min(ends[at][0], degree[place]);
    ends[at][1] = Math.max(ends[at][1], degree[place]);
    ends[at][2] += 1;
  });
  const title = ([low, high]) => (low === high ? `${low}` : `${low} to ${high}`);
  const groups = ends.map((end, at) => ({ title: end[2] ? title(end) : "", color: `--d${at}`, count: end[2] }));
  return { code, groups };
}
