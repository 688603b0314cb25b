// The same points without WebGL, for machines that have none.

/** Draws points on a canvas with plain rectangles. */
export class FlatPoints {
  constructor(canvas) {
    Object.assign(this, { canvas, pen: canvas.getContext("2d"), shown: new Uint32Array(0) });
  }

  place(before, after) { Object.assign(this, { before, after }); }
  color(bytes) { this.bytes = bytes; }
  order(places) { this.shown = places; }

  draw(view, size, share) {
    const { pen, canvas, before, after, bytes } = this;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    let last = -1;
    for (const at of this.shown) {
      const x = before[2 * at] + (after[2 * at] - before[2 * at]) * share;
      const y = before[2 * at + 1] + (after[2 * at + 1] - before[2 * at + 1]) * share;
      const color = (bytes[4 * at] << 16) | (bytes[4 * at + 1] << 8) | bytes[4 * at + 2];
      if (color !== last) {
        pen.fillStyle = `#${color.toString(16).padStart(6, "0")}`;
        pen.globalAlpha = bytes[4 * at + 3] / 255;
        last = color;
      }
      const across = canvas.width / 2 + (x - view.x) * view.scale;
      pen.fillRect(across - size / 2, canvas.height / 2 - (y - view.y) * view.scale - size / 2, size, size);
    }
    pen.globalAlpha = 1;
  }
}
