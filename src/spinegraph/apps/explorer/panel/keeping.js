// Storing a node: the one thing in the page that writes, and only with the token.

import { store } from "../api.js";
import { element, short } from "../dom.js";
import { fault } from "../naming.js";

/** A button that stores what `body()` returns and tells of it. */
export function keeping(body, stored) {
  const said = element("div", { role: "status" });
  const keep = async () => {
    const node = body();
    try {
      const told = await store(node);
      if (!told) return;
      said.replaceChildren(element("p", {}, `${short(node.name)} is stored; ${told.refreshed} vectors were computed anew.`));
      stored(node.name);
    } catch (error) {
      said.replaceChildren(fault(error));
    }
  };
  return element("details", { class: "keeping" }, element("summary", {}, "Keep it in the network"),
    element("p", { class: "note" }, "Writing needs the service's token; spine serve says in which file it is."),
    element("button", { type: "button", class: "main", id: "store", onclick: keep }, "Store it"), said);
}
