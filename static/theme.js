// Sets the color theme before the page is painted, so that a dark page never flashes white.
// It's loaded by a blocking <script> in the head; app.js holds the switch itself.
(() => {
  "use strict";
  const root = document.documentElement;
  // What was chosen in this browser, and instead of which default: a default that has changed since, which is the
  // account's own setting, is the later word.
  const standard = root.dataset.themeDefault || "auto";
  let chosen = "";
  let over = "";
  try {
    [chosen = "", over = standard] = (localStorage.getItem("rollcall-theme") ?? "").split(" ");
  } catch {
    // Storage may be forbidden; the system's theme is then the only one.
  }
  if (!["auto", "light", "dark"].includes(chosen) || over !== standard) chosen = standard;
  const dark = chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = chosen;
  root.dataset.bsTheme = dark ? "dark" : "light";
  root.classList.add("js");
})();
