// The map of all nodes: points, marks above them, and the tooltip.

import { rgb, setColors, short, shown } from "../dom.js";
import { choose, emit, on, shownNodes, state } from "../state.js";
import { FlatPoints } from "./flat_points.js";
import { GlPoints } from "./gl_points.js";
import { Grid } from "./grid.js";
import { drawMarks } from "./marks.js";
import { control, View } from "./view.js";

const REACH = 14; // pixels from a point within which it can be picked
const FAINT = 28; // opacity, of 255, of nodes that are not in colour
const MOVING = 700; // milliseconds that points take to move
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Redraws only if something has changed. */
export class MapView {
  constructor(root) {
    this.canvas = root.querySelector("#points");
    this.above = root.querySelector("#marks");
    this.tip = root.querySelector("#tip");
    this.outline = null; // corners of the current selection, in pixels
    this.pen = this.above.getContext("2d");
    this.view = new View();
    this.share = 1;
    this.hover = -1;
    this.frames = 0;
    control(this.above, this.view, {
      changed: () => this.redraw(),
      hovered: (at) => this.hovered(at),
      picked: (at, reach = REACH) => this.picked(at, reach),
      all: () => this.showAll(),
      tool: () => root.querySelector("input[name=tool]:checked").value,
      outlined: (corners, isDone) => this.outlined(corners, isDone),
    });
    this.above.addEventListener("focus", () => this.redraw());
    this.above.addEventListener("blur", () => this.redraw());
    root.querySelector(".zoom").addEventListener("click", ({ target }) => {
      if (target.dataset.zoom === "all") this.showAll();
      else if (target.dataset.zoom) this.view.closer(target.dataset.zoom === "in" ? 1.5 : 1 / 1.5);
      this.redraw();
    });
    new ResizeObserver(() => this.resized()).observe(root);
    for (const event of ["coloring", "muted", "filters", "selected"]) on(event, () => this.recolor());
    on("sizing", () => this.resize());
    for (const event of ["chosen", "twins", "tab"]) on(event, () => this.redraw());
    on("trial", () => this.land());
    on("chosen", () => this.bringIntoView());
    document.addEventListener("theme", () => {
      if (!state.network) return;
      setColors(state.network.colors);
      this.recolor();
    });
  }

  /** Show a network; nodes of the previous one move to their new positions. */
  take(network, before) {
    this.points ??= GlPoints.of(this.canvas) ?? new FlatPoints(this.canvas);
    this.points.onrestored = () => this.redraw();
    const after = interleaved(network.x, network.y);
    const from = after.slice();
    if (before) network.names.forEach((name, place) => {
      const old = before.places.get(name);
      if (old !== undefined) { from[2 * place] = before.x[old]; from[2 * place + 1] = before.y[old]; }
    });
    this.grid = new Grid(network.x, network.y);
    this.points.place(from, after);
    this.hover = -1;
    setColors(network.colors);
    if (!before) this.showAll();
    this.resize();
    this.recolor();
    if (before) this.moveAlong(); else this.share = 1;
  }

  /** Move all nodes to their positions on the map by another part. */
  async show(by) {
    const { network } = state;
    await network.layout(by);
    if (network !== state.network) return; // the new network is shown by the same part
    const { places, x, y } = network;
    network.show(by);
    this.take(network, { places, x, y });
    this.showAll();
  }

  moveAlong() {
    const started = performance.now();
    const step = (now) => {
      this.share = still.matches ? 1 : eased(Math.min(1, (now - started) / MOVING));
      if (this.view.zoom <= 1.01) this.showAll();
      this.redraw();
      if (this.share < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  /** Move the hypothetical node from its position, or from the middle of its links, to its new one. */
  land() {
    const { network, trial } = state;
    const to = trial?.place;
    if (!to) { this.star = null; this.redraw(); return; }
    const linked = trial.links.map((name) => network.place(name)).filter((place) => place !== undefined);
    const mean = (values) => linked.reduce((sum, place) => sum + values[place] / linked.length, 0);
    const from = this.star ?? (linked.length ? [mean(network.x), mean(network.y)] : to);
    const started = performance.now();
    this.star = from;
    const step = (now) => {
      if (state.trial !== trial) return;
      const share = still.matches ? 1 : eased(Math.min(1, (now - started) / MOVING));
      this.star = [0, 1].map((axis) => (1 - share) * from[axis] + share * to[axis]);
      this.redraw();
      if (share < 1) requestAnimationFrame(step);
      else if (!this.isSeen(...to)) this.showAll();
    };
    requestAnimationFrame(step);
  }

  /** Show all nodes. */
  showAll() {
    if (!this.grid) return;
    this.view.fit(this.grid);
    this.redraw();
  }

  isSeen(x, y) { return this.view.isSeen(this.view.pixels(x, y)); }

  bringIntoView() {
    const { network, chosen } = state;
    if (chosen === null || !network) return;
    const place = network.place(chosen);
    const [x, y] = [network.x[place], network.y[place]];
    if (this.isSeen(x, y)) return;
    Object.assign(this.view, { x, y });
    this.redraw();
  }

  resized() {
    const box = this.above.parentElement.getBoundingClientRect();
    const wasAll = Math.abs(this.view.zoom - 1) < 0.01;
    Object.assign(this.view, { wide: box.width, high: box.height });
    this.dense = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.above]) {
      canvas.width = Math.round(box.width * this.dense);
      canvas.height = Math.round(box.height * this.dense);
    }
    if (wasAll) this.showAll();
    this.redraw();
  }

  recolor() {
    const { network, coloring, selected } = state;
    const { code, groups } = network.coloring(coloring);
    const packed = (opacity) => new Uint32Array(Uint8Array.from(groups.flatMap((group) => [...rgb(group.color), opacity])).buffer);
    const [bright, faint] = [packed(222), packed(FAINT)];
    const words = new Uint32Array(network.size); // four bytes of a colour at a time
    this.inColor = shownNodes();
    for (let place = 0; place < words.length; place += 1) {
      const isBright = this.inColor[place] && (!selected || selected.has(place));
      words[place] = (isBright ? bright : faint)[code[place]];
    }
    const bytes = new Uint8Array(words.buffer);
    this.points.ground = rgb("--ground");
    this.points.color(bytes);
    this.points.order(inOrder(code, groups, bytes));
    this.redraw();
  }

  resize() {
    const { network, sizing } = state;
    this.points.resize(sizing ? network.sizes(sizing) : new Float32Array(network.size).fill(1));
    this.redraw();
  }

  get size() {
    const { size } = state.network;
    const small = size < 800 ? 9 : size < 4000 ? 6.5 : size < 15000 ? 5 : size < 50000 ? 3.5 : 2.6;
    return Math.min(16, small * Math.max(1, this.view.zoom) ** 0.35);
  }

  redraw() {
    if (this.isWaiting || !state.network) return;
    this.isWaiting = true;
    requestAnimationFrame(() => { this.isWaiting = false; this.draw(); });
  }

  draw() {
    const { view, dense } = this;
    this.frames += 1;
    this.points.draw({ x: view.x, y: view.y, scale: view.scale * dense }, this.size * dense, this.share);
    this.pen.setTransform(dense, 0, 0, dense, 0, 0);
    drawMarks(this.pen, view, this.marks(), (name) => this.at(name), palette());
  }

  at(name) {
    const place = state.network.place(name);
    return place === undefined ? null : this.view.pixels(state.network.x[place], state.network.y[place]);
  }

  marks() {
    const { network, chosen, trial, isTrying } = state;
    const place = this.hover;
    return {
      chosen,
      twins: isTrying ? [] : state.twins,
      neighbors: isTrying ? [] : state.neighbors,
      title: chosen === null ? "" : short(chosen, 32),
      trial: this.star && { at: this.view.pixels(...this.star), links: isTrying ? trial.links : [], title: short(trial.name, 32) },
      hover: place < 0 ? null : this.view.pixels(network.x[place], network.y[place]),
      outline: this.outline,
      hasCross: document.activeElement === this.above && this.above.matches(":focus-visible"),
    };
  }

  /** The point near a pixel, or -1. */
  near(at, reach = REACH) {
    const within = reach === Infinity ? 2 * Math.max(this.view.wide, this.view.high) : reach;
    return this.grid.nearest(...this.view.plane(...at), within / this.view.scale, (place) => this.inColor[place]);
  }

  hovered(at) {
    if (!this.grid) return;
    const found = at ? this.near(at) : -1;
    if (found !== this.hover) { this.hover = found; this.redraw(); }
    this.above.classList.toggle("over", found >= 0);
    this.tip.hidden = found < 0;
    if (found < 0) return;
    const { network } = state;
    const name = network.names[found];
    const about = [network.roleOf(name), network.labelOf(name), links(network.degree[found])].filter(Boolean);
    this.tip.replaceChildren(short(name, 60), document.createElement("br"), about.join(" · "));
    const [x, y] = this.at(name);
    this.tip.classList.toggle("left", x > this.view.wide / 2);
    this.tip.style.translate = `${x}px ${y}px`;
  }

  /** Draw an outline; when it is done, select the nodes in colour within it. */
  outlined(corners, isDone) {
    this.outline = isDone ? null : corners;
    if (isDone) this.select(corners);
    this.redraw();
  }

  /** Select the nodes within an outline in pixels, by default all nodes in view. */
  select(corners = [[0, 0], [this.view.wide, 0], [this.view.wide, this.view.high], [0, this.view.high]]) {
    const { x, y } = state.network;
    const outline = corners.map((corner) => this.view.plane(...corner));
    const found = new Set();
    for (let place = 0; place < x.length; place += 1) if (this.inColor[place] && isWithin(x[place], y[place], outline)) found.add(place);
    state.selected = found;
    emit("selected");
  }

  /** The current view of the map and the legend, as a PNG. */
  async picture(title) {
    const { network, coloring } = state;
    const { wide, high } = this.view;
    const page = Object.assign(document.createElement("canvas"), { width: wide * this.dense, height: high * this.dense });
    const pen = page.getContext("2d");
    const colors = palette();
    this.draw();
    pen.fillStyle = colors.ground;
    pen.fillRect(0, 0, page.width, page.height);
    for (const layer of [this.canvas, this.above]) pen.drawImage(layer, 0, 0);
    pen.setTransform(this.dense, 0, 0, this.dense, 0, 0);
    const { groups } = network.coloring(coloring);
    const lines = groups.filter((group) => group.count);
    const top = high - 14 - 18 * lines.length;
    const line = (words, color, y, isBold) => {
      pen.font = `${isBold ? 600 : 400} 13px system-ui, sans-serif`;
      pen.fillStyle = colors.ink;
      pen.fillText(words, isBold ? 14 : 30, y);
      if (!color) return;
      pen.fillStyle = color;
      pen.beginPath();
      pen.arc(20, y - 4.5, 5, 0, 2 * Math.PI);
      pen.fill();
    };
    pen.globalAlpha = 0.85;
    pen.fillStyle = colors.ground;
    pen.fillRect(6, top - 20, 190, 18 * lines.length + 28);
    pen.globalAlpha = 1;
    line(title, null, top - 4, true);
    const style = getComputedStyle(document.documentElement);
    lines.forEach((group, at) => line(short(group.title, 24), style.getPropertyValue(group.color), top + 14 + 18 * at));
    return new Promise((done) => { page.toBlob(done, "image/png"); });
  }

  picked(at, reach) {
    if (!this.grid) return;
    const found = this.near(at, reach);
    if (state.isPicking) { if (found >= 0) emit("picked", state.network.names[found]); return; }
    choose(found < 0 ? null : state.network.names[found]);
  }
}

const eased = (share) => share * share * (3 - 2 * share); // slow at both ends
const links = (degree) => `${shown(degree)} ${degree === 1 ? "link" : "links"}`;

function interleaved(x, y) {
  const both = new Float32Array(2 * x.length);
  for (let at = 0; at < x.length; at += 1) { both[2 * at] = x[at]; both[2 * at + 1] = y[at]; }
  return both;
}

// Whether a point is within an outline: then a line from it crosses the outline an odd number of times.
function isWithin(x, y, outline) {
  let isInside = false;
  for (let at = 0, last = outline.length - 1; at < outline.length; last = at, at += 1) {
    const [[x1, y1], [x2, y2]] = [outline[at], outline[last]];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) isInside = !isInside;
  }
  return isInside;
}

// Faint nodes below, small groups on top.
function inOrder(code, groups, bytes) {
  const rank = groups.map((group, at) => at).sort((a, b) => groups[b].count - groups[a].count);
  const layer = new Uint16Array(groups.length);
  rank.forEach((group, at) => { layer[group] = at + groups.length; });
  const layers = Uint16Array.from(code, (group, place) => (bytes[4 * place + 3] === FAINT ? 0 : layer[group]));
  const starts = new Uint32Array(2 * groups.length + 1);
  for (const one of layers) starts[one + 1] += 1;
  for (let at = 1; at < starts.length; at += 1) starts[at] += starts[at - 1];
  const places = new Uint32Array(code.length);
  layers.forEach((one, place) => { places[starts[one]] = place; starts[one] += 1; });
  return places;
}

function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    ink: read("--ink"), ground: read("--ground"), accent: read("--accent"), twin: read("--twin"),
    onTwin: read("--on-twin"), trial: read("--trial"),
  };
}
