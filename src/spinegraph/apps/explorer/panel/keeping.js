// Storing a node: the one thing in the page that writes, and only with the token.

import { post, useToken } from "../api.js";
import { element, short } from "../dom.js";
import { fault } from "../naming.js";

/** A form that stores what `body()` returns and tells of it. */
export function keeping(body, stored) {
  const said = element("div", { role: "status" });
  const token = element("input", { id: "write-token", type: "password", autocomplete: "off", placeholder: "paste it; kept until the page closes" });
  const keep = async (event) => {
    event.preventDefault();
    if (token.value) useToken(token.value);
    token.value = "";
    const node = body();
    try {
      const told = await post("/v1/nodes", node);
      said.replaceChildren(element("p", {}, `${short(node.name)} is stored; ${told.refreshed} vectors were computed anew.`));
      stored(node.name);
    } catch (error) {
      said.replaceChildren(fault(error));
    }
  };
  return element("details", { class: "keeping" }, element("summary", {}, "Keep it in the network"),
    element("p", { class: "note" }, "Writing needs the service's token: spine serve says in which file it is."),
    element("form", { onsubmit: keep }, element("label", { for: "write-token" }, "Token"), token,
      element("button", { type: "submit", class: "main" }, "Store it")), said);
}
