// Requests, to this service only.

let token = ""; // only in memory
let asking = null;
let seen = () => {};

/** An error response of the service, with its message. */
export class Problem extends Error {
  constructor(status, detail, field) {
    super(detail);
    Object.assign(this, { status, field });
  }
}


/** Call a function with the version of every answer. */
export const watchVersion = (listener) => { seen = listener; };

// Names may be integers that are too large for JavaScript numbers; such names are parsed as BigInt.
const LARGE = /[[,:]-?\d{16,}[,\]}]/;
const exact = (key, value, context) =>
  typeof value === "number" && context && /^-?\d{16,}$/.test(context.source) ? BigInt(context.source) : value;
export const parsed = (text) => (LARGE.test(text) ? JSON.parse(text, exact) : JSON.parse(text));
const written = (body) =>
  JSON.stringify(body, (key, value) => (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value));

async function ask(path, options) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service does not answer; is it still running?");
  }
  const text = await answer.text();
  if (answer.ok) {
    const found = parsed(text);
    if (found.version !== undefined) seen(found.version);
    return found;
  }
  let problem = {};
  try { problem = JSON.parse(text); } catch { /* not a problem document */ }
  throw new Problem(answer.status, problem.detail || answer.statusText, problem.field);
}

async function askedAgain(path, options) {
  try {
    return await ask(path, options);
  } catch (error) {
    if (error.status !== 401) throw error;
    if (!(await askForToken())) throw new Problem(401, "Nothing was sent: this service needs its token first.");
    try {
      return await ask(path, options);
    } catch (again) {
      if (again.status !== 401) throw again;
      token = "";
      throw new Problem(401, "This is not the service's token; spine serve prints the path of its file.");
    }
  }
}

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("ask-token");
    dialog.addEventListener("close", () => {
      asking = null;
      if (dialog.returnValue === "use") token = document.getElementById("token").value.trim();
      document.getElementById("token").value = "";
      resolve(dialog.returnValue === "use");
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}

/** GET JSON. */
export function get(path, query = {}, signal = undefined) {
  const asked = new URLSearchParams(query).toString();
  return askedAgain(asked ? `${path}?${asked}` : path, { signal });
}

/** POST JSON. */
export const post = (path, body, signal = undefined) =>
  askedAgain(path, { method: "POST", body: written(body), headers: { "Content-Type": "application/json" }, signal });

/** The path of a node, or of one of its resources. */
export const node = (name, ...about) => ["/v1/nodes", String(name), ...about.map(String)]
  .map((part, place) => (place ? encodeURIComponent(part) : part)).join("/");
