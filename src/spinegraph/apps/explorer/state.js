// What the parts of the page share: the network, what is chosen, and news of changes.

const listeners = new Map();

export const state = {
  network: null, // Network
  coloring: "role", // role, label or degree
  muted: new Set(), // groups of the coloring that are dimmed
  chosen: null, // name of the node in the panel
  twins: [], // names shown beside it
  neighbors: [], // names linked to it
  trial: null, // { name, place, links } of the hypothetical node
  isTrying: false, // whether that node is what the panel shows
  isPicking: false, // whether a click on the map picks neighbours for it
};

/** Call a function whenever something is told. */
export function on(news, listener) {
  if (!listeners.has(news)) listeners.set(news, []);
  listeners.get(news).push(listener);
}

/** Tell all that listen. */
export function tell(news, about) {
  for (const listener of listeners.get(news) ?? []) listener(about);
}

/** Choose a node, or none. */
export function choose(name) {
  if (name !== null && !state.network.has(name)) return false;
  Object.assign(state, { chosen: name, twins: [], neighbors: [] });
  tell("chosen");
  return true;
}
