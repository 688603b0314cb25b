// Keeping a node: the one thing in the page that writes. On this computer it needs no token.

import { post } from "../api.js";
import { element, short } from "../dom.js";
import { fault } from "../naming.js";

const LOCAL = ["localhost", "127.0.0.1", "[::1]"];

/** A button that keeps what `body()` returns and tells of it. */
export function keeping(body, stored) {
  const said = element("div", { role: "status" });
  const keep = async () => {
    const node = body();
    try {
      const told = await post("/v1/nodes", node);
      const vectors = `${told.refreshed} ${told.refreshed === 1 ? "vector was" : "vectors were"} updated`;
      said.replaceChildren(element("p", {}, `${short(node.name)} is kept; ${vectors}.`));
      stored(node.name);
    } catch (error) {
      said.replaceChildren(fault(error));
    }
  };
  return element("details", { class: "keeping" }, element("summary", {}, "Keep it in the network"),
    element("p", { class: "note" }, "It joins the network in the folder given by --store; without one, until the explorer stops. ",
      !LOCAL.includes(location.hostname) && "From another computer the service asks for its token."),
    element("button", { type: "button", class: "main", id: "store", onclick: keep }, "Keep it"), said);
}
