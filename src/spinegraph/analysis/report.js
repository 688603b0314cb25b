"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const shown = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const map = document.getElementById("map");
  const select = document.getElementById("color");
  const nodes = data.map;
  const names = nodes.names.map(shown);
  const roles = nodes.roles.map((role) => shown(data.roles[role]));
  const size = names.length < 800 ? 8 : names.length < 3000 ? 6 : names.length < 10000 ? 4.5 : 3;
  const type = names.length > 6000 ? "scattergl" : "scatter";
  const narrow = matchMedia("(max-width: 640px)"); // a legend beside the map would take half of it
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const ink = () => (dark.matches ? "#dfe5ea" : data.layout.font.color);
  const clear = () => ({ paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { ...data.layout.font, color: ink() } });
  const below = { orientation: "h", x: 0, y: 0, yanchor: "top" };
  let mark = null;

  function trace(places, more, about) {
    return {
      type, mode: "markers",
      x: places.map((place) => nodes.x[place]), y: places.map((place) => nodes.y[place]),
      text: places.map((place) => `<b>${names[place]}</b><br>${roles[place]}${about(place)}`),
      hovertemplate: "%{text}<extra></extra>", ...more,
    };
  }

  function traces(coloring) {
    const everyone = names.map((_, place) => place);
    const title = shown(coloring.title);
    if (coloring.values) {
      const values = coloring.values;
      const marker = {
        size, color: values, colorscale: data.scale, showscale: true,
        colorbar: { thickness: 10, len: 0.6, outlinewidth: 0, title: { text: title, side: "right" } },
      };
      const about = (place) => `<br>${title}: ${values[place] === null ? "unknown" : +values[place].toPrecision(3)}`;
      return [trace(everyone, { marker, showlegend: false }, about)];
    }
    const drawn = coloring.groups.map((group, code) => {
      const about = () => (coloring.title === "role" ? "" : `<br>${title}: ${shown(group)}`);
      const mine = everyone.filter((place) => coloring.codes[place] === code);
      const marker = { size, color: coloring.colors[code], opacity: 0.85 };
      const name = `${shown(group)} (${mine.length.toLocaleString("en")})`;
      return trace(mine, { marker, name, legendrank: code }, about);
    });
    return drawn.sort((one, other) => other.x.length - one.x.length); // small groups lie on top
  }

  function drawMap() {
    const coloring = nodes.colorings[select.value];
    const drawn = traces(coloring);
    if (mark !== null) {
      const ring = { size: 22, color: "rgba(0,0,0,0)", line: { color: ink(), width: 2 } };
      drawn.push(trace([mark], { type, mode: "markers", marker: ring, showlegend: false }, () => ""));
    }
    const axis = { visible: false };
    Plotly.react(map, drawn, {
      ...data.layout, ...clear(), margin: { l: 10, r: 10, t: 34, b: 10 }, xaxis: axis, yaxis: { ...axis, scaleanchor: "x" },
      hovermode: "closest", dragmode: "pan", showlegend: !coloring.values,
      legend: { itemsizing: "constant", title: { text: shown(coloring.title) }, ...(narrow.matches ? below : {}) },
    }, { ...config, scrollZoom: true });
  }

  nodes.colorings.forEach((coloring, place) => select.add(new Option(coloring.title, place)));
  select.addEventListener("change", drawMap);
  narrow.addEventListener("change", drawMap);
  document.getElementById("find").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    const texts = nodes.names.map((name) => String(name).toLowerCase());
    let place = texts.indexOf(wanted);
    if (place < 0) place = texts.findIndex((text) => text.startsWith(wanted));
    if (place < 0) place = texts.findIndex((text) => text.includes(wanted));
    mark = wanted && place >= 0 ? place : null;
    document.getElementById("found").textContent =
      mark !== null ? `${nodes.names[mark]}: ${data.roles[nodes.roles[mark]]}` : wanted ? "not on the map" : "";
    drawMap();
  });
  function drawFigures() {
    for (const [id, figure] of Object.entries(data.figures)) {
      const annotations = figure.layout.annotations.map((note) => ({ ...note, font: { ...note.font, color: ink() } }));
      Plotly.react(id, figure.data, { ...figure.layout, ...clear(), annotations }, { ...config, displayModeBar: false });
    }
  }
  drawMap();
  drawFigures();
  dark.addEventListener("change", () => { drawMap(); drawFigures(); });

  // On paper a figure would keep the width that it had in the window: the sizes are those of the print style.
  const paper = { map: [700, 460] };
  const figures = ["map", ...Object.keys(data.figures)];
  addEventListener("beforeprint", () => figures.forEach((id) => {
    const [width, height] = paper[id] || [370, 210];
    Plotly.relayout(id, { width, height, autosize: false });
  }));
  addEventListener("afterprint", () => figures.forEach((id) => {
    Plotly.relayout(id, { width: null, height: null, autosize: true });
  }));
  document.body.dataset.drawn = "yes";
})();
