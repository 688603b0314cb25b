// The visible part of the map, and moving it by pointer, wheel and keys.

const MOVE = 60; // pixels per arrow key
const CLOSEST = 4000; // maximum zoom, relative to the whole map

/** Centre and scale; pixels are those of the page. */
export class View {
  constructor() { Object.assign(this, { x: 0, y: 0, scale: 1, whole: 1, wide: 1, high: 1 }); }

  /** Show a whole rectangle, below the tools at the top. */
  fit({ left, right, low, high }, margin = 28, top = 36) {
    const wide = Math.max(right - left, 1e-6);
    const tall = Math.max(high - low, 1e-6);
    this.whole = Math.min((this.wide - 2 * margin) / wide, (this.high - 2 * margin - top) / tall);
    this.scale = this.whole = Math.max(this.whole, 1e-6);
    this.x = (left + right) / 2;
    this.y = (low + high) / 2 + top / (2 * this.scale);
  }

  get zoom() { return this.scale / this.whole; }
  pixels(x, y) { return [this.wide / 2 + (x - this.x) * this.scale, this.high / 2 - (y - this.y) * this.scale]; }
  plane(across, down) {
    return [this.x + (across - this.wide / 2) / this.scale, this.y - (down - this.high / 2) / this.scale];
  }

  move(across, down) {
    this.x -= across / this.scale;
    this.y += down / this.scale;
  }

  /** Zoom in by a factor, keeping the point under a pixel fixed. */
  closer(factor, across = this.wide / 2, down = this.high / 2) {
    const [x, y] = this.plane(across, down);
    this.scale = Math.min(this.whole * CLOSEST, Math.max(this.whole / 4, this.scale * factor));
    const [nowX, nowY] = this.plane(across, down);
    this.x += x - nowX;
    this.y += y - nowY;
  }

  isSeen([across, down], margin = 20) {
    return across > margin && across < this.wide - margin && down > margin && down < this.high - margin;
  }
}

/**
 * Let a canvas move a view; callbacks receive every change, the pointer, and clicks.
 *
 * While `tool()` is "box" or "lasso", or shift is held, dragging draws an outline instead: `outlined(corners, isDone)`.
 */
export function control(canvas, view, { changed, hovered, picked, all, tool, outlined }) {
  const held = new Map();
  let moved = 0;
  let outline = null;
  const at = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, at(event));
    moved = held.size > 1 ? Infinity : 0;
    const kind = event.shiftKey ? "box" : tool();
    outline = kind === "move" || held.size > 1 ? null : { kind, from: at(event), corners: [at(event)] };
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = at(event);
    if (!held.has(event.pointerId)) { hovered(now); return; }
    const [x, y] = held.get(event.pointerId);
    const before = held.size > 1 ? spread() : 0;
    held.set(event.pointerId, now);
    if (held.size > 1) view.closer(spread() / Math.max(before, 1), ...now);
    moved += Math.hypot(now[0] - x, now[1] - y);
    if (moved < 4) return;
    if (outline) {
      const [left, top] = outline.from;
      if (outline.kind === "lasso") outline.corners.push(now);
      else outline.corners = [[left, top], [now[0], top], now, [left, now[1]]];
      outlined(outline.corners, false);
      return;
    }
    if (held.size === 1) view.move(now[0] - x, now[1] - y);
    changed();
  });
  const released = (event) => {
    if (!held.delete(event.pointerId)) return;
    if (outline && moved >= 4) outlined(outline.corners, true);
    else if (moved < 4 && event.type === "pointerup") picked(at(event));
    outline = null;
  };
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("pointerleave", () => hovered(null));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.closer(Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 120) / 400), ...at(event));
    changed();
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = { ArrowLeft: [MOVE, 0], ArrowRight: [-MOVE, 0], ArrowUp: [0, MOVE], ArrowDown: [0, -MOVE] }[event.key];
    if (move) view.move(...move);
    else if (event.key === "+" || event.key === "=") view.closer(1.4);
    else if (event.key === "-") view.closer(1 / 1.4);
    else if (event.key === "0") all();
    else if (event.key === "Enter" || event.key === " ") picked([view.wide / 2, view.high / 2], Infinity);
    else return;
    event.preventDefault();
    changed();
  });
}
