// Points drawn in one WebGL call, so that 100,000 move as smoothly as 100.

const VERTEX = `#version 300 es
in vec2 before; in vec2 after; in vec4 color; in float factor;
uniform vec4 view; uniform float share; uniform float size;
out vec4 shade; out float wide;
void main() {
  gl_Position = vec4(mix(before, after, share) * view.xy + view.zw, 0.0, 1.0);
  gl_PointSize = wide = size * factor;
  shade = color;
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade; in float wide; out vec4 pixel;
void main() {
  float away = length(gl_PointCoord - 0.5) * wide;
  float inside = clamp(wide * 0.5 - away, 0.0, 1.0);
  pixel = vec4(shade.rgb, 1.0) * shade.a * inside;
}`;

function program(gl) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return made;
}

// Tested on a separate canvas, since a canvas returns only one kind of context.
function isSlow() {
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (!gl) return true;
  const debug = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer = String(gl.getParameter(debug ? debug.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}

/** Draws points on a canvas; `of` returns null if WebGL 2 is missing or slow. */
export class GlPoints {
  static of(canvas, isAnyAllowed = false) {
    if (!isAnyAllowed && isSlow()) return null;
    const gl = canvas.getContext("webgl2", { antialias: false });
    return gl && new GlPoints(canvas, gl);
  }

  constructor(canvas, gl) {
    Object.assign(this, { canvas, gl, count: 0, isLost: false });
    canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); this.isLost = true; });
    canvas.addEventListener("webglcontextrestored", () => {
      this.isLost = false;
      this.begin();
      if (this.held.order) { this.place(...this.held.places); this.color(this.held.colors); this.resize(this.held.factors); this.order(this.held.order); }
      this.onrestored?.();
    });
    this.held = {};
    this.begin();
  }

  begin() {
    const { gl } = this;
    this.program = program(gl);
    gl.useProgram(this.program);
    this.at = Object.fromEntries(["view", "share", "size"].map((name) => [name, gl.getUniformLocation(this.program, name)]));
    this.buffers = Object.fromEntries(["before", "after", "color", "factor", "order"].map((name) => [name, gl.createBuffer()]));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  fill(name, values, size, type, isNormal = false) {
    const { gl } = this;
    const place = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, isNormal, 0, 0);
  }

  /** Coordinates before and after a move, (n * 2) each. */
  place(before, after) {
    this.held.places = [before, after];
    this.fill("before", before, 2, this.gl.FLOAT);
    this.fill("after", after, 2, this.gl.FLOAT);
    this.count = after.length / 2;
  }

  /** Red, green, blue, opacity of each point, bytes (n * 4). */
  color(bytes) {
    this.held.colors = bytes;
    this.fill("color", bytes, 4, this.gl.UNSIGNED_BYTE, true);
  }

  /** Sizes of points relative to the usual size, (n). */
  resize(factors) {
    this.held.factors = factors;
    this.fill("factor", factors, 1, this.gl.FLOAT);
  }

  /** Which points are drawn, the last on top. */
  order(places) {
    this.held.order = places;
    this.gl.bindBuffer(this.gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    this.gl.bufferData(this.gl.ELEMENT_ARRAY_BUFFER, places, this.gl.STATIC_DRAW);
    this.count = places.length;
  }

  /** Draw with a view { scale, x, y } in pixels; `share` of the way from before to after. */
  draw(view, size, share) {
    const { gl, canvas } = this;
    if (this.isLost) return;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const [wide, high] = [canvas.width / 2, canvas.height / 2];
    gl.uniform4f(this.at.view, view.scale / wide, view.scale / high, (-view.x * view.scale) / wide, (-view.y * view.scale) / high);
    gl.uniform1f(this.at.share, share);
    gl.uniform1f(this.at.size, size);
    gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
  }
}
