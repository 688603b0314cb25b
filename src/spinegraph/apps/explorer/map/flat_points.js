// The same points by the processor alone, for machines without a graphics card: WebGL in software is far slower.

/** Draws points on a canvas, pixel by pixel, over an opaque ground. */
export class FlatPoints {
  constructor(canvas) {
    Object.assign(this, { canvas, pen: canvas.getContext("2d", { alpha: false }), shown: new Uint32Array(0), ground: [255, 255, 255] });
  }

  get count() { return this.shown.length; }
  place(before, after) { Object.assign(this, { before, after }); }
  order(places) { this.shown = places; }

  /** Colours are blended with the ground once, so that a pixel is written in one go. */
  color(bytes) {
    const [red, green, blue] = this.ground;
    const blend = (value, ground, part) => Math.round(ground + (value - ground) * part);
    this.packed = new Uint32Array(bytes.length / 4);
    for (let at = 0; at < this.packed.length; at += 1) {
      const part = bytes[4 * at + 3] / 255;
      this.packed[at] = (255 << 24) | (blend(bytes[4 * at + 2], blue, part) << 16)
        | (blend(bytes[4 * at + 1], green, part) << 8) | blend(bytes[4 * at], red, part);
    }
  }

  /** Draw with a view { scale, x, y } in pixels; `share` of the way from before to after. */
  draw(view, size, share) {
    const { canvas, before, after, packed, shown } = this;
    const wide = canvas.width;
    const high = canvas.height;
    if (!wide || !high) return;
    if (this.image?.width !== wide || this.image.height !== high) this.image = new ImageData(wide, high);
    const pixels = new Uint32Array(this.image.data.buffer);
    const [red, green, blue] = this.ground;
    pixels.fill((255 << 24) | (blue << 16) | (green << 8) | red);
    const rows = disc(size);
    const reach = (rows.length - 1) / 2;
    for (let next = 0; next < shown.length; next += 1) {
      const at = shown[next];
      const x = before[2 * at] + (after[2 * at] - before[2 * at]) * share;
      const y = before[2 * at + 1] + (after[2 * at + 1] - before[2 * at + 1]) * share;
      const across = Math.round(wide / 2 + (x - view.x) * view.scale);
      const down = Math.round(high / 2 - (y - view.y) * view.scale);
      if (across < reach || across >= wide - reach || down < reach || down >= high - reach) continue;
      const color = packed[at];
      for (let row = -reach; row <= reach; row += 1) {
        const half = rows[row + reach];
        const middle = (down + row) * wide + across;
        for (let to = middle - half; to <= middle + half; to += 1) pixels[to] = color;
      }
    }
    this.pen.putImageData(this.image, 0, 0);
  }
}

// Half the length of each pixel row of a disc, from the top to the bottom.
function disc(size) {
  const reach = Math.max(1, Math.round((size - 1) / 2));
  return Int32Array.from({ length: 2 * reach + 1 }, (_, row) =>
    Math.round(Math.sqrt(Math.max(0, (size / 2) ** 2 - (row - reach) ** 2)) - 0.3));
}
