// Sets the color theme before the page is painted, so that a dark page never flashes white.
// It's loaded by a blocking <script> in the head; app.js holds the switch itself.
(() => {
  "use strict";
  const root = document.documentElement;
  let chosen = null;
  try {
    chosen = localStorage.getItem("rollcall-theme");
  } catch {
    // Storage may be forbidden; the system's theme is then the only one.
  }
  if (chosen !== "light" && chosen !== "dark") chosen = root.dataset.themeDefault || "auto";
  const dark = chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = chosen;
  root.dataset.bsTheme = dark ? "dark" : "light";
  root.classList.add("js");
})();
