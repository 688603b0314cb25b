// Marks above the points: the chosen node, its twins and neighbours, the hypothetical node, the cross.

const TAU = 2 * Math.PI;

function ring(pen, [x, y], radius, color, width, halo) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, TAU);
  pen.lineWidth = width + 3;
  pen.strokeStyle = halo;
  pen.stroke();
  pen.lineWidth = width;
  pen.strokeStyle = color;
  pen.stroke();
}

function line(pen, from, to, color, dashes = [], width = 1.2) {
  pen.beginPath();
  pen.lineWidth = width;
  pen.setLineDash(dashes);
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.strokeStyle = color;
  pen.stroke();
  pen.setLineDash([]);
}

function label(pen, [x, y], text, colors, isBold = false) {
  pen.font = `${isBold ? 600 : 500} 13px system-ui, sans-serif`;
  const wide = pen.measureText(text).width;
  const left = x + wide + 14 > pen.canvas.clientWidth ? x - wide - 14 : x + 14;
  pen.globalAlpha = 0.88;
  pen.fillStyle = colors.ground;
  pen.fillRect(left - 4, y - 10, wide + 8, 20);
  pen.globalAlpha = 1;
  pen.fillStyle = colors.ink;
  pen.fillText(text, left, y + 4.5);
}

function star(pen, [x, y], radius, color, halo) {
  pen.beginPath();
  for (let at = 0; at < 10; at += 1) {
    const reach = at % 2 ? radius * 0.45 : radius;
    const turn = (at * TAU) / 10 - TAU / 4;
    pen.lineTo(x + reach * Math.cos(turn), y + reach * Math.sin(turn));
  }
  pen.closePath();
  pen.lineWidth = 4;
  pen.strokeStyle = halo;
  pen.stroke();
  pen.fillStyle = color;
  pen.fill();
}

function badge(pen, at, text, colors) {
  ring(pen, at, 8, colors.twin, 2, colors.ground);
  const [x, y] = [at[0] + 10, at[1] - 10];
  pen.beginPath();
  pen.arc(x, y, 8.5, 0, TAU);
  pen.fillStyle = colors.twin;
  pen.fill();
  pen.fillStyle = colors.onTwin;
  pen.font = "600 11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText(text, x, y + 4);
  pen.textAlign = "start";
}

/** Draw all marks; `at(name)` is a node's position in pixels, or null. */
export function drawMarks(pen, size, marks, at, colors) {
  pen.clearRect(0, 0, size.wide, size.high);
  const chosen = marks.chosen === null ? null : at(marks.chosen);
  if (chosen) {
    const linked = marks.neighbors.map(at).filter(Boolean);
    pen.globalAlpha = linked.length > 200 ? 0.25 : 0.7;
    for (const one of linked) line(pen, chosen, one, colors.ink);
    pen.globalAlpha = 1;
    for (const one of linked.slice(0, 200)) ring(pen, one, 4.5, colors.ink, 1.2, colors.ground);
    const twins = marks.twins.map(at);
    for (const one of twins.filter(Boolean)) line(pen, chosen, one, colors.twin, [5, 5]);
    twins.forEach((one, place) => one && badge(pen, one, String(place + 1), colors));
    ring(pen, chosen, 9, colors.accent, 3, colors.ground);
    label(pen, chosen, marks.title, colors, true);
  }
  if (marks.trial) {
    for (const one of marks.trial.links.map(at).filter(Boolean)) {
      line(pen, marks.trial.at, one, colors.trial, [], 2);
      ring(pen, one, 6, colors.trial, 2, colors.ground);
    }
    star(pen, marks.trial.at, 12, colors.trial, colors.ground);
    label(pen, marks.trial.at, marks.trial.title, colors, true);
  }
  if (marks.outline) {
    pen.beginPath();
    for (const corner of marks.outline) pen.lineTo(...corner);
    pen.closePath();
    pen.globalAlpha = 0.12;
    pen.fillStyle = colors.accent;
    pen.fill();
    pen.globalAlpha = 1;
    pen.lineWidth = 1.8;
    pen.strokeStyle = colors.accent;
    pen.stroke();
  }
  if (marks.hover) ring(pen, marks.hover, 7, colors.ink, 2, colors.ground);
  if (marks.hasCross) {
    const [x, y] = [size.wide / 2, size.high / 2];
    for (const [across, up] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      line(pen, [x + 6 * across, y + 6 * up], [x + 18 * across, y + 18 * up], colors.ink, [], 1.8);
    }
  }
}
