// The same points drawn by the CPU, for machines without a GPU, where WebGL is far slower.

const FEW = 5000; // points up to which smooth edges are cheap

/** Draws points on a canvas, pixel by pixel, over an opaque ground. */
export class FlatPoints {
  constructor(canvas) {
    Object.assign(this, { canvas, pen: canvas.getContext("2d", { alpha: false }), shown: new Uint32Array(0), ground: [255, 255, 255] });
  }

  get count() { return this.shown.length; }
  place(before, after) { Object.assign(this, { before, after }); }
  order(places) { this.shown = places; }
  resize(factors) { this.factors = factors; }

  /** Blend colours with the ground once, so that each pixel is written in one step. */
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
    const { canvas, before, after, packed, shown, factors } = this;
    const wide = canvas.width;
    const high = canvas.height;
    if (!wide || !high) return;
    if (this.image?.width !== wide || this.image.height !== high) this.image = new ImageData(wide, high);
    const pixels = new Uint32Array(this.image.data.buffer);
    const [red, green, blue] = this.ground;
    pixels.fill((255 << 24) | (blue << 16) | (green << 8) | red);
    const all = { pixels, wide, high, packed, shown, factors, places: between(before, after, share) };
    const window = { scale: view.scale, left: wide / 2 - view.x * view.scale, top: high / 2 + view.y * view.scale };
    if (shown.length > FEW) plain(all, window, size); else smooth(all, window, size / 2);
    this.pen.putImageData(this.image, 0, 0);
  }
}

function between(before, after, share) {
  return share >= 1 ? after : after.map((place, at) => before[at] + (place - before[at]) * share);
}

// Draw discs of whole pixels, row by row, which is the fastest way.
function plain({ pixels, wide, high, packed, shown, factors, places }, { scale, left, top }, size) {
  const discs = new Map();
  let [rows, reach, factor] = [null, 0, NaN];
  for (let next = 0; next < shown.length; next += 1) {
    const at = shown[next];
    if (factors[at] !== factor) {
      factor = factors[at];
      if (!discs.has(factor)) discs.set(factor, disc(size * factor));
      rows = discs.get(factor);
      reach = (rows.length - 1) / 2;
    }
    const across = Math.round(left + places[2 * at] * scale);
    const down = Math.round(top - places[2 * at + 1] * scale);
    if (across < reach || across >= wide - reach || down < reach || down >= high - reach) continue;
    const color = packed[at];
    for (let row = -reach; row <= reach; row += 1) {
      const half = rows[row + reach];
      const middle = (down + row) * wide + across;
      for (let to = middle - half; to <= middle + half; to += 1) pixels[to] = color;
    }
  }
}

// Draw discs with edges blended with what is below them, as on a GPU.
function smooth({ pixels, wide, high, packed, shown, factors, places }, { scale, left, top }, usual) {
  for (let next = 0; next < shown.length; next += 1) {
    const at = shown[next];
    const radius = usual * factors[at];
    const whole = Math.max(0, radius - 1) ** 2;
    const x = left + places[2 * at] * scale;
    const y = top - places[2 * at + 1] * scale;
    const [first, last] = [Math.max(0, Math.floor(x - radius)), Math.min(wide - 1, Math.ceil(x + radius))];
    const bottom = Math.min(high - 1, Math.ceil(y + radius));
    for (let down = Math.max(0, Math.floor(y - radius)); down <= bottom; down += 1) {
      const far = (down + 0.5 - y) ** 2;
      for (let across = first; across <= last; across += 1) {
        const apart = far + (across + 0.5 - x) ** 2;
        const to = down * wide + across;
        if (apart <= whole) pixels[to] = packed[at];
        else if (apart < radius ** 2) pixels[to] = mixed(pixels[to], packed[at], Math.min(1, radius - Math.sqrt(apart)));
      }
    }
  }
}

// Blend two colours, given the second one's part: red and blue in one step, then green.
function mixed(below, above, part) {
  const more = (256 * part) | 0;
  const both = ((below & 0xff00ff) * (256 - more) + (above & 0xff00ff) * more) >>> 8;
  const green = ((below & 0xff00) * (256 - more) + (above & 0xff00) * more) >>> 8;
  return (255 << 24) | (both & 0xff00ff) | (green & 0xff00);
}

// Half the length of each pixel row of a disc, from top to bottom.
function disc(size) {
  const reach = Math.max(1, Math.round((size - 1) / 2));
  return Int32Array.from({ length: 2 * reach + 1 }, (_, row) =>
    Math.round(Math.sqrt(Math.max(0, (size / 2) ** 2 - (row - reach) ** 2)) - 0.3));
}
