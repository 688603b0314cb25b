// Shared state of the page: the network, what is chosen, and events.

import { written } from "./network.js";

const listeners = new Map();

export const state = {
  network: null, // Network
  by: "all", // part of the vectors for the map
  coloring: "role", // key of a column
  sizing: "", // key of a column, or empty
  muted: new Set(), // groups of the coloring that are dimmed
  filters: [], // { key, low, high } of numbers or { key, level } of categories; all must match
  selected: null, // Set of indices, or null for all
  chosen: null, // name of the node in the panel
  twins: [], // names of the nodes it is compared with
  neighbors: [], // names linked to it
  trial: null, // { name, place, links } of the hypothetical node
  isTrying: false, // whether the panel shows that node
  isPicking: false, // whether a click on the map selects neighbours for it
};

/** Call a function at every event with this name. */
export function on(event, listener) {
  if (!listeners.has(event)) listeners.set(event, []);
  listeners.get(event).push(listener);
}

/** Call all listeners of an event. */
export function emit(event, detail) {
  for (const listener of listeners.get(event) ?? []) listener(detail);
}

/** Choose a node, or none (null). */
export function choose(name) {
  if (name !== null && !state.network.has(name)) return false;
  Object.assign(state, { chosen: name, twins: [], neighbors: [] });
  emit("chosen");
  return true;
}

/** Load a column of the current network, even if that is replaced meanwhile. */
export async function loaded(key) {
  const { network } = state;
  const column = await network.load(key);
  return network === state.network ? column : loaded(key);
}

/** 1 for each node in colour, which passes all filters and whose group is not dimmed. */
export function shownNodes() {
  const { network, coloring, muted, filters } = state;
  const { code } = network.coloring(coloring);
  const found = Uint8Array.from(code, (group) => (muted.has(group) ? 0 : 1));
  for (const { key, low, high, level } of filters) {
    const column = network.column(key);
    const passes = column.codes ? (place) => written(column, place) === level
      : (place) => column.values[place] >= low && column.values[place] <= high;
    for (let place = 0; place < found.length; place += 1) if (found[place] && !passes(place)) found[place] = 0;
  }
  return found;
}
