// What the parts of the page share: the network, what is chosen, and news of changes.

import { written } from "./network.js";

const listeners = new Map();

export const state = {
  network: null, // Network
  by: "all", // parts of the vectors that the map is by
  coloring: "role", // key of a column
  sizing: "", // key of a column, or none
  muted: new Set(), // groups of the coloring that are dimmed
  filters: [], // { key, low, high } of numbers or { key, level } of categories: all must hold
  selected: null, // Set of places, or null for all
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

/** Read a column of the network that is shown, though another may take its place meanwhile. */
export async function loaded(key) {
  const { network } = state;
  const column = await network.load(key);
  return network === state.network ? column : loaded(key);
}

/** 1 for each node that is in colour: it passes all filters and its group is not dimmed. */
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
