// Finds the point nearest to a position without looking at all points.

/** Points sorted into square cells. */
export class Grid {
  constructor(x, y) {
    Object.assign(this, { x, y });
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let at = 0; at < x.length; at += 1) {
      left = Math.min(left, x[at]); right = Math.max(right, x[at]);
      low = Math.min(low, y[at]); high = Math.max(high, y[at]);
    }
    if (!x.length) [left, right, low, high] = [-1, 1, -1, 1];
    Object.assign(this, { left, right, low, high });
    this.cell = Math.max(right - left, high - low, 1e-6) / Math.max(1, Math.ceil(Math.sqrt(x.length / 2)));
    this.across = Math.floor((right - left) / this.cell) + 1;
    this.up = Math.floor((high - low) / this.cell) + 1;
    const starts = new Uint32Array(this.across * this.up + 1);
    const cells = Uint32Array.from(x, (one, at) => this.column(one) + this.across * this.row(y[at]));
    for (const cell of cells) starts[cell + 1] += 1;
    for (let at = 1; at < starts.length; at += 1) starts[at] += starts[at - 1];
    const next = starts.slice();
    this.sorted = new Uint32Array(x.length);
    cells.forEach((cell, at) => { this.sorted[next[cell]] = at; next[cell] += 1; });
    this.starts = starts;
  }

  column(x) { return Math.min(this.across - 1, Math.max(0, Math.floor((x - this.left) / this.cell))); }
  row(y) { return Math.min(this.up - 1, Math.max(0, Math.floor((y - this.low) / this.cell))); }

  /** The point nearest to (x, y) within a distance, or -1; `isShown` may leave some out. */
  nearest(x, y, within, isShown = () => true) {
    let [best, least] = [-1, within * within];
    for (let row = this.row(y - within); row <= this.row(y + within); row += 1) {
      for (let column = this.column(x - within); column <= this.column(x + within); column += 1) {
        const cell = column + this.across * row;
        for (let at = this.starts[cell]; at < this.starts[cell + 1]; at += 1) {
          const point = this.sorted[at];
          const apart = (this.x[point] - x) ** 2 + (this.y[point] - y) ** 2;
          if (apart <= least && isShown(point)) [best, least] = [point, apart];
        }
      }
    }
    return best;
  }
}
