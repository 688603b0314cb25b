// Adding a node, the only part of the page that writes. On this computer it needs no token.

import { post } from "../api.js";
import { element, short } from "../dom.js";
import { fault } from "../naming.js";

const LOCAL = ["localhost", "127.0.0.1", "[::1]"];

/** A button that stores what `body()` returns, and then calls `stored`. */
export function keeping(body, stored) {
  const said = element("div", { role: "status" });
  const keep = async () => {
    const node = body();
    try {
      const answer = await post("/v1/nodes", node);
      const vectors = `${answer.refreshed} ${answer.refreshed === 1 ? "vector was" : "vectors were"} updated`;
      said.replaceChildren(element("p", {}, `${short(node.name)} was added; ${vectors}.`));
      stored(node.name);
    } catch (error) {
      said.replaceChildren(fault(error));
    }
  };
  return element("details", { class: "keeping" }, element("summary", {}, "Add it to the network"),
    element("p", { class: "note" }, "It is stored in the folder given by --store or, without one, until the explorer stops. ",
      !LOCAL.includes(location.hostname) && "From another computer, the service needs its token."),
    element("button", { type: "button", class: "main", id: "store", onclick: keep }, "Add it"), said);
}
