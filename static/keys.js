// Work by keyboard: "?" lists the keys, "/" goes to the search, "g b" to a page of the menu, "j" and "k" from row to row,
// "x" ticks, "n" turns the page. Keys are left alone while somebody types, and can be switched off for those whose
// software presses keys by itself (WCAG 2.1.4).
(() => {
  "use strict";
  const dialog = document.getElementById("keys");
  if (!dialog) return;
  const box = dialog.querySelector("[data-keys-on]");
  const stored = "rollcall-keys";
  const arrived = "rollcall-arrived";
  const goFor = 1500; // Milliseconds that "g" waits for the second key.

  function remembered() {
    try {
      return localStorage.getItem(stored) !== "off";
    } catch {
      return true;
    }
  }

  function remember(on) {
    try {
      localStorage.setItem(stored, on ? "on" : "off");
    } catch {
      // Until the next page, where storage is forbidden.
    }
  }

  const typing = (element) => element.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

  // ---- Rows ----

  const rows = () => [...document.querySelectorAll("main tbody tr, main [data-row]")].filter((row) => row.querySelector("a[href]") && row.offsetParent);
  const rowOf = (element) => element.closest("tbody tr, [data-row]");

  function move(step) {
    const all = rows();
    if (all.length === 0) return;
    const at = all.indexOf(rowOf(document.activeElement));
    const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
    next.querySelector("a[href]").focus();
    next.scrollIntoView({ block: "nearest" });
  }

  function tick() {
    const tickBox = rowOf(document.activeElement)?.querySelector("input[type=checkbox]:not(:disabled)");
    tickBox?.click();
  }

  // ---- Places ----

  function search() {
    const field = document.querySelector("main [data-search], main input[type=search]");
    if (field) {
      field.focus();
      field.select();
      return;
    }
    try {
      sessionStorage.setItem(arrived, "search");
    } catch {
      // The field is then a press of "/" further.
    }
    document.querySelector("[data-go=s]")?.click();
  }

  let goSince = -goFor;

  function press(event) {
    const went = event.timeStamp - goSince < goFor;
    goSince = -goFor;
    if (went) {
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      link?.click();
      return link !== null;
    }
    switch (event.key) {
      case "?": dialog.showModal(); return true;
      case "/": search(); return true;
      case "g": goSince = event.timeStamp; return true;
      case "j": move(1); return true;
      case "k": move(-1); return true;
      case "x": tick(); return true;
      case "n": document.querySelector("main a[rel=next]")?.click(); return true;
    }
    return false;
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (dialog.open || typing(event.target) || !box.checked) return;
    if (press(event)) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-keys]")) dialog.showModal();
    if (event.target === dialog) dialog.close(); // Beside its content.
  });
  try {
    const wanted = sessionStorage.getItem(arrived) === "search";
    sessionStorage.removeItem(arrived);
    if (wanted) document.querySelector("main [data-search], main input[type=search]")?.focus();
  } catch {
    // Storage is forbidden.
  }
  box.checked = remembered();
  box.addEventListener("change", () => remember(box.checked));
})();
