// Runs before anything is drawn, so that the wrong theme never flashes.
"use strict";
(() => {
  const chosen = () => {
    try { return localStorage.getItem("spine-theme") || "auto"; } catch { return "auto"; }
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const theme = chosen();
    document.documentElement.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
    document.dispatchEvent(new Event("theme"));
  };
  dark.addEventListener("change", show);
  show();
  document.addEventListener("DOMContentLoaded", () => {
    const switches = document.getElementById("theme");
    for (const one of switches.querySelectorAll("input")) one.checked = one.value === chosen();
    switches.addEventListener("change", (event) => {
      try { localStorage.setItem("spine-theme", event.target.value); } catch { /* not stored then */ }
      show();
    });
  });
})();
