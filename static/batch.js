// A batch's page while it moves. Its rows stay where they are while somebody reads them: what came since is counted,
// and shown at a press. Everything works without it, as a page that stands still.
(() => {
  "use strict";
  const live = document.getElementById("live");
  const section = () => document.getElementById("items");
  if (!live || !section()) return;

  // ---- What is new since the rows were drawn ----

  const phrase = window.rollcallPhrase;
  const answered = (count) => phrase("%s answered since: show", count);
  const number = (element, name) => Number(element.dataset[name] || 0);
  const done = (element) => number(element, "all") - number(element, "outstanding");

  function fresh(drawn, now) {
    const state = drawn.dataset.state || "all";
    if (state === "rejected") return { count: 0 };
    if (state === "outstanding") return { count: done(now) - done(drawn), words: answered };
    const more = number(now, state) - number(drawn, state);
    if (more > 0 || state !== "all") return { count: more, words: (count) => phrase("%s new: show", count) };
    return { count: waiting ? done(now) - done(drawn) : 0, words: answered };
  }

  let waiting = false; // Rows have changed that somebody is reading.

  function tell() {
    const drawn = section();
    const now = document.querySelector("[data-counts]");
    const bar = document.getElementById("items-new");
    if (!drawn || !now || !bar) return;
    const { count, words } = fresh(drawn, now);
    const label = bar.querySelector("[data-new-text]");
    const text = count > 0 && words(count.toLocaleString());
    if (text && label.textContent !== text) label.textContent = text;
    if (bar.hidden !== (count <= 0)) bar.hidden = count <= 0;
  }

  // ---- The rows that are there, each in its place ----

  // Rows are read while the pointer, the focus or a selection is among them.
  function reading() {
    const rows = section().querySelector("tbody");
    if (!rows) return false;
    const marked = document.getSelection();
    return rows.matches(":hover") || rows.contains(document.activeElement) ||
      (marked !== null && !marked.isCollapsed && marked.containsNode(rows, true));
  }

  // Where there are no rows yet, or a crawl's level, which only grows, the whole is drawn again.
  function redraw() {
    const link = document.querySelector("#items-new a");
    if (link) window.htmx.ajax("GET", link.getAttribute("hx-get"), { source: "#items", target: "#items", select: "#items", swap: "outerMorph" });
  }

  function freshen() {
    waiting = false;
    if (!section().dataset.rows) return; // Drawn at the end: nothing moves any more.
    if (section().querySelector("[data-item]") === null) redraw();
    const open = section().querySelectorAll("[data-item]:not([data-state=stored])");
    const asked = new URLSearchParams([...open].map((each) => ["id", each.dataset.item]));
    window.htmx.ajax("GET", `${section().dataset.rows}?${asked}`, { source: "#items", target: "#items", swap: "none" });
  }

  function moved() {
    waiting = reading();
    if (!waiting && !document.hidden) freshen();
    tell();
  }

  function left() {
    if (waiting && !reading()) {
      freshen();
      tell();
    }
  }

  live.addEventListener("items", moved);
  document.addEventListener("mouseout", left);
  document.addEventListener("focusout", () => setTimeout(left));
  document.addEventListener("selectionchange", left);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) moved();
  });
  new MutationObserver(tell).observe(document.getElementById("roll-call"), { childList: true, subtree: true, attributes: true });

  // ---- Showing what is new keeps what was open, and the place of whoever pressed ----

  let open = [];
  let pressed = false;
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#items-new a")) return;
    open = [...document.querySelectorAll("details[open][id]")].map((each) => each.id);
    pressed = true;
    waiting = false;
  });
  document.addEventListener("htmx:after:swap", () => {
    if (!pressed || document.getElementById("items-new")?.hidden === false) return; // A swap of something else came first.
    pressed = false;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    document.getElementById("items-title")?.focus({ preventScroll: true });
    tell();
  });
})();
