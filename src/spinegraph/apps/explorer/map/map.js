// The map of all nodes: points, marks above them, and what the pointer is over.

import { rgb, short, shown } from "../dom.js";
import { choose, on, state, tell } from "../state.js";
import { FlatPoints } from "./flat_points.js";
import { GlPoints } from "./gl_points.js";
import { Grid } from "./grid.js";
import { drawMarks } from "./marks.js";
import { control, View } from "./view.js";

const REACH = 14; // pixels from a point that still pick it
const CLEAR = 12; // pixels between a point and the legend
const MOVING = 700; // milliseconds that points take to a new place
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws whenever something has changed, and not otherwise. */
export class MapView {
  constructor(root) {
    this.canvas = root.querySelector("#points");
    this.above = root.querySelector("#marks");
    this.tip = root.querySelector("#tip");
    this.legend = root.querySelector("#legend");
    this.corner = [-CLEAR, -CLEAR]; // width and height that the legend takes
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
    });
    this.above.addEventListener("focus", () => this.redraw());
    this.above.addEventListener("blur", () => this.redraw());
    root.querySelector(".zoom").addEventListener("click", ({ target }) => {
      if (target.dataset.zoom === "all") this.showAll();
      else if (target.dataset.zoom) this.view.closer(target.dataset.zoom === "in" ? 1.5 : 1 / 1.5);
      this.redraw();
    });
    const sizes = new ResizeObserver(() => this.resized());
    for (const part of [root, this.legend]) sizes.observe(part);
    for (const news of ["coloring", "muted"]) on(news, () => this.recolor());
    for (const news of ["chosen", "twins", "tab"]) on(news, () => this.redraw());
    on("trial", () => this.land());
    on("chosen", () => this.bringIntoView());
    document.addEventListener("theme", () => state.network && this.recolor());
  }

  /** Take over a network; nodes that were there move to their new places. */
  take(network, before) {
    this.points ??= GlPoints.of(this.canvas) ?? new FlatPoints(this.canvas);
    this.points.onrestored = () => this.redraw();
    const after = interleaved(network.x, network.y);
    const from = after.slice();
    if (before) network.names.forEach((name, place) => {
      const old = before.place(name);
      if (old !== undefined) { from[2 * place] = before.x[old]; from[2 * place + 1] = before.y[old]; }
    });
    this.grid = new Grid(network.x, network.y);
    this.points.place(from, after);
    this.hover = -1;
    if (!before) this.showAll();
    this.recolor();
    if (before) this.moveAlong(); else this.share = 1;
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

  /** Let the hypothetical node fly from where it was, or from among its links, to where it lands. */
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
      this.star = [0, 1].map((axis) => from[axis] + (to[axis] - from[axis]) * share);
      this.redraw();
      if (share < 1) requestAnimationFrame(step);
      else if (!this.isSeen(...to)) this.showAll();
    };
    requestAnimationFrame(step);
  }

  /** Show all nodes; where the legend would hide some, beside it or above it, whichever is larger. */
  showAll() {
    if (!this.grid) return;
    const { view } = this;
    const { x, y } = state.network;
    view.fit(this.grid);
    if (x.some((across, place) => this.isHidden(across, y[place]))) {
      const rooms = [[this.corner[0], 0], [0, this.corner[1]]];
      const scales = rooms.map((room) => { view.fit(this.grid, room); return view.scale; });
      view.fit(this.grid, rooms[scales[0] > scales[1] ? 0 : 1]);
    }
    this.redraw();
  }

  /** Whether a place lies under the legend, which stands in the lower left corner. */
  isHidden(x, y) {
    const [across, down] = this.view.pixels(x, y);
    return across < this.corner[0] + CLEAR && down > this.view.high - this.corner[1] - CLEAR;
  }

  isSeen(x, y) { return this.view.isSeen(this.view.pixels(x, y)) && !this.isHidden(x, y); }

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
    const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = this.legend;
    this.corner = offsetHeight ? [offsetLeft + offsetWidth, box.height - offsetTop] : [-CLEAR, -CLEAR];
    this.dense = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.above]) {
      canvas.width = Math.round(box.width * this.dense);
      canvas.height = Math.round(box.height * this.dense);
    }
    if (wasAll) this.showAll();
    this.redraw();
  }

  recolor() {
    const { network, coloring, muted } = state;
    const { code, groups } = network.coloring(coloring);
    const colors = groups.map((group) => rgb(group.color));
    const faint = document.documentElement.dataset.theme === "dark" ? 26 : 30;
    const bytes = new Uint8Array(4 * network.size);
    code.forEach((group, place) => {
      bytes.set(colors[group], 4 * place);
      bytes[4 * place + 3] = muted.has(group) ? faint : 222;
    });
    this.points.ground = rgb("--ground");
    this.points.color(bytes);
    this.points.order(inOrder(code, groups, muted));
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
      hasCross: document.activeElement === this.above && this.above.matches(":focus-visible"),
    };
  }

  /** The point near a pixel, or -1. */
  near(at, reach = REACH) {
    const { network, coloring, muted } = state;
    const { code } = network.coloring(coloring);
    const within = reach === Infinity ? 2 * Math.max(this.view.wide, this.view.high) : reach;
    return this.grid.nearest(...this.view.plane(...at), within / this.view.scale, (place) => !muted.has(code[place]));
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

  picked(at, reach) {
    if (!this.grid) return;
    const found = this.near(at, reach);
    if (state.isPicking) { if (found >= 0) tell("picked", state.network.names[found]); return; }
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

// Dimmed groups below, small groups on top.
function inOrder(code, groups, muted) {
  const rank = groups.map((group, at) => [muted.has(at) ? 0 : 1, -group.count, at]);
  const sorted = rank.slice().sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((one) => one[2]);
  const starts = new Map();
  let next = 0;
  for (const group of sorted) { starts.set(group, next); next += groups[group].count; }
  const places = new Uint32Array(code.length);
  code.forEach((group, at) => { const to = starts.get(group); places[to] = at; starts.set(group, to + 1); });
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
