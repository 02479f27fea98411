// What pages can't do by themselves: show times in the reader's zone, copy text, tick all boxes, switch the theme,
// follow a stream as long as its window is used, and say now and then what moved. Everything else works without it.
(() => {
  "use strict";
  const root = document.documentElement;
  const ownZone = root.dataset.zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const zone = zoneChosen() === "utc" ? "UTC" : ownZone;
  root.dataset.shownZone = zone; // For the scripts of single pages.

  // ---- Words ----

  // A text of these scripts in the page's language, with its values where each %s stands. The page brings the texts of
  // every language but English; views/script_text.go lists them.
  const texts = JSON.parse(root.dataset.texts || "{}");
  function phrase(english, ...values) {
    let next = 0;
    return (texts[english] ?? english).replace(/%(?:\[(\d+)\])?s/g, (_, place) => values[place ? place - 1 : next++]);
  }
  window.rollcallPhrase = phrase; // For the scripts of single pages.

  // ---- Times ----

  // The reader's zone, or UTC where this browser was told so.
  function zoneChosen() {
    try {
      return localStorage.getItem("rollcall-zone") || "own";
    } catch {
      return "own";
    }
  }

  function switchZone() {
    try {
      localStorage.setItem("rollcall-zone", zone === "UTC" ? "own" : "utc");
    } catch {
      return; // Without storage there is nothing to remember it in.
    }
    location.reload(); // Charts and all: whatever shows a time was drawn in the other zone.
  }

  // Dates are written as the page around them writes its own: in its language, and in English with the day first.
  const language = root.lang === "en" ? "en-GB" : root.lang || undefined;
  const format = (options) => new Intl.DateTimeFormat(language, { timeZone: zone, hourCycle: "h23", ...options });
  const day = format({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const full = format({ dateStyle: "full", timeStyle: "long" });
  const exact = format({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
  const clock = format({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "short" });
  const nowText = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" }).format(0, "second");
  const steps = [[60, "second", 1], [3600, "minute", 60], [2 * 86400, "hour", 3600], [30 * 86400, "day", 86400]];

  // The one rule for times near now. What is past is told in full units; what is to come is rounded: three days ahead are
  // three days, and not two from the next second on. Empty for what is too far off.
  function near(seconds) {
    for (const [limit, unit, size] of steps) {
      const count = seconds > 0 ? Math.round(seconds / size) : Math.ceil(seconds / size);
      if (Math.abs(count) * size < limit) return count === 0 ? nowText : relative.format(count, unit);
    }
    return "";
  }

  function timeText(date, style) {
    if (style === "exact") return exact.format(date);
    if (style === "clock") return clock.format(date);
    const told = near((date.getTime() - Date.now()) / 1000);
    if (style === "relative") return told || day.format(date);
    return told ? `${day.format(date)} (${told})` : full.format(date);
  }

  function localize(element) {
    const date = new Date(element.dateTime);
    if (Number.isNaN(date.getTime())) return;
    const text = timeText(date, element.dataset.time);
    const title = full.format(date);
    if (element.textContent !== text) element.textContent = text;
    if (element.title !== title) element.title = title;
  }

  function localizeAll() {
    for (const element of document.querySelectorAll("time[data-time]")) localize(element);
    // The same time twice says nothing: it stands there on this clock already.
    for (const element of document.querySelectorAll("[data-clock-of]")) element.hidden = element.dataset.clockOf === zone;
  }

  // ---- The polite voice of a live page: one sentence a while, and one at the end ----

  const quietFor = 20000;
  let lastSaid = Date.now();
  let finishedSaid = document.querySelector("[data-say][data-finished]") !== null;

  function say() {
    const voice = document.getElementById("say");
    const source = document.querySelector("[data-say]");
    if (!voice || !source) return;
    const finished = source.hasAttribute("data-finished");
    const due = finished ? !finishedSaid : Date.now() - lastSaid > quietFor;
    if (!due || voice.textContent === source.dataset.say) return;
    voice.textContent = source.dataset.say;
    lastSaid = Date.now();
    finishedSaid = finished;
  }

  let liveText = "";

  function showLive(text) {
    liveText = text;
    for (const mark of document.querySelectorAll("[data-live-state]")) {
      mark.hidden = text === "";
      const words = text && phrase(text);
      if (mark.textContent !== words) mark.textContent = words;
      mark.classList.toggle("is-live", text === "Live");
    }
  }

  document.addEventListener("htmx:sse:error", (event) => {
    showLive("Connection lost, trying again");
    if (event.detail.status === 401) location.reload(); // The session ended: the sign-in page says so.
  });

  // ---- The stream of a live page ----

  // A browser keeps six connections to a host, and a stream holds one while it lasts. Of the windows in sight only those
  // used last follow theirs; the others say that they don't, and do again when they are used. So every page still loads.
  const mostStreams = 3;
  const sayEvery = 20000;
  const live = document.getElementById("live");
  if (live) followStream();

  function followStream() {
    const self = `${Date.now()}-${Math.random()}`;
    const windows = new BroadcastChannel("rollcall-live");
    const others = new Map(); // The other windows in sight: when each was used last, and was heard of.
    let used = 0; // When this one was; 0 while it is out of sight or needs no stream.
    let ready = false; // htmx has looked at the page: what is triggered before would be lost.
    let over = false; // The stream said that nothing more will come.
    let following = false;
    let connection = null;

    const tell = (ask) => windows.postMessage({ id: self, used, ask });

    function mayFollow() {
      let ahead = 0;
      for (const [id, each] of others) {
        if (each.heard < Date.now() - 4 * sayEvery) others.delete(id); // It went without a word.
        else if (each.used > used || (each.used === used && id > self)) ahead++;
      }
      return used > 0 && ahead < mostStreams;
    }

    function decide() {
      if (over || mayFollow() === following) return;
      following = !following;
      if (following) {
        // Not by a trigger: htmx may have looked at the page before its extension for streams was there to hear of it.
        window.htmx.ajax("GET", live.getAttribute("hx-sse:connect"), { source: live });
        return;
      }
      connection?.reader?.cancel(); // It would connect again, which is refused below.
      showLive("Paused: click to follow");
    }

    function use() {
      if (!ready || over || document.hidden) return;
      used = Date.now();
      tell(true);
      decide();
    }

    function leave() {
      used = 0;
      tell(false);
      decide();
    }

    windows.addEventListener("message", ({ data }) => {
      if (data.used > 0) others.set(data.id, { used: data.used, heard: Date.now() });
      else others.delete(data.id);
      if (data.ask && used > 0) tell(false);
      decide();
    });
    live.addEventListener("htmx:sse:before:connection", (event) => {
      if (!following) event.preventDefault();
    });
    live.addEventListener("htmx:sse:after:connection", (event) => {
      connection = event.detail.connection;
      if (following) showLive("Live");
      else connection.abortController.abort(); // It was on its way when another window was used.
    });
    live.addEventListener("htmx:sse:close", (event) => {
      connection = null;
      if (event.detail.reason !== "message") return;
      over = true;
      leave();
      showLive("");
    });
    document.addEventListener("visibilitychange", () => (document.hidden ? leave() : use()));
    document.addEventListener("pointerdown", () => following || use());
    window.addEventListener("focus", use);
    window.addEventListener("pagehide", leave);
    window.addEventListener("pageshow", (event) => event.persisted && use());
    setInterval(() => {
      if (used > 0) tell(false);
      decide();
    }, sayEvery);
    document.addEventListener("DOMContentLoaded", () =>
      setTimeout(() => {
        ready = true; // htmx began to wait for its turn before.
        use();
      }),
    );
  }

  // ---- Copying ----

  async function copy(button) {
    const from = button.dataset.copyFrom;
    const text = from ? document.querySelector(from).textContent : button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return; // Without the permission nothing is copied, and the button doesn't claim so.
    }
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1500);
  }

  // ---- Theme ----

  const themes = ["auto", "light", "dark"];
  const themeNames = {
    auto: phrase("Color theme: as the system"),
    light: phrase("Color theme: light"),
    dark: phrase("Color theme: dark"),
  };
  const systemDark = matchMedia("(prefers-color-scheme: dark)");

  function applyTheme(theme) {
    const dark = theme === "dark" || (theme === "auto" && systemDark.matches);
    root.dataset.theme = theme;
    root.dataset.bsTheme = dark ? "dark" : "light";
    for (const button of document.querySelectorAll("[data-theme-switch]")) {
      button.setAttribute("aria-label", themeNames[theme]);
      button.title = button.getAttribute("aria-label");
    }
  }

  function nextTheme() {
    const theme = themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length];
    try {
      localStorage.setItem("rollcall-theme", `${theme} ${root.dataset.themeDefault || "auto"}`);
    } catch {
      // Forgotten at the next page, where storage is forbidden.
    }
    applyTheme(theme);
  }

  // ---- Mistakes that were put right ----

  // A fragment names the fields that it found to be right: what was said of them when the form was sent is over.
  function takeBack(names) {
    for (const name of names) {
      document.getElementById(`${name}-error`)?.remove();
      document.querySelector(`#error-summary a[href="#${CSS.escape(name)}"]`)?.closest("li").remove();
      const field = document.getElementById(name);
      field?.classList.remove("is-invalid");
      for (const each of ["aria-invalid", "aria-describedby"]) field?.removeAttribute(each);
    }
    const summary = document.getElementById("error-summary");
    if (summary && !summary.querySelector("li, .note-text > span")) summary.remove();
  }

  // ---- Wiring ----

  function countLines(area) {
    const lines = area.value.split("\n").filter((line) => line.trim() !== "").length;
    const target = document.getElementById(area.dataset.countLines);
    const number = lines.toLocaleString();
    target.textContent = lines === 0 ? "" : lines === 1 ? phrase("%s line.", number) : phrase("%s lines.", number);
    for (const each of document.querySelectorAll(`[data-lines-of="${CSS.escape(area.id)}"]`)) {
      const most = lines === 1 ? phrase("Up to %s for the line above.", number) : phrase("Up to %s for the lines above.", number);
      each.textContent = lines === 0 ? "" : most;
    }
  }

  function tickAll(box) {
    for (const each of document.querySelectorAll(`input[type=checkbox][name="${CSS.escape(box.dataset.tickAll)}"]`)) {
      each.checked = box.checked;
    }
  }

  // What a field holds, repeated where the page speaks of it.
  function mirror(field) {
    for (const each of document.querySelectorAll(`[data-mirror="${CSS.escape(field.id)}"]`)) {
      const number = Number(field.value.replaceAll(",", ""));
      each.textContent = Number.isInteger(number) && number > 0 ? number.toLocaleString() : "–";
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (button) copy(button);
    if (event.target.closest("[data-theme-switch]")) nextTheme();
    if (event.target.closest("[data-zone-switch]")) switchZone();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) tickAll(event.target);
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-count-lines]")) countLines(event.target);
    if (event.target.id) mirror(event.target);
  });
  systemDark.addEventListener("change", () => applyTheme(root.dataset.theme));

  applyTheme(root.dataset.theme || "auto");
  for (const name of document.querySelectorAll("[data-zone-name]")) name.textContent = zone;
  for (const button of document.querySelectorAll("[data-zone-switch]")) {
    button.hidden = ownZone === "UTC";
    button.textContent = phrase("Show %s", zone === "UTC" ? ownZone : "UTC");
  }
  for (const area of document.querySelectorAll("[data-count-lines]")) countLines(area);
  localizeAll();
  setInterval(localizeAll, 10000);
  document.querySelector("[data-focus]")?.focus();

  // A strip that scrolls starts where the reader is.
  function showCurrent() {
    for (const strip of document.querySelectorAll(".menu, .tabs")) {
      const current = strip.querySelector("[aria-current=page], [aria-current=true]");
      if (current && strip.scrollWidth > strip.clientWidth) strip.scrollLeft = current.offsetLeft - strip.clientWidth / 3;
    }
  }
  showCurrent();
  let wide = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === wide) return; // Only a bar of the browser came or went.
    wide = window.innerWidth;
    showCurrent();
  });

  // Fragments that arrive later carry times in UTC; they are turned before the next paint.
  new MutationObserver(() => {
    localizeAll();
    say();
    for (const each of document.querySelectorAll("[data-right]")) takeBack(each.dataset.right.split(" "));
    if (liveText) showLive(liveText); // A fragment brings its mark as the server knows it.
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
})();
