// The charts of the overview. They are drawn from the table beside them, so both say the same; the page is asked for a new
// table when its figures were counted anew. Without this script the table is there.
(() => {
  "use strict";
  const section = document.querySelector("[data-charts]");
  if (!section || typeof uPlot === "undefined") return;
  const byDay = section.dataset.unit === "day";
  // Days are sums in the zone that the server names; hours are named in the zone that the page shows its times in.
  const zone = (byDay ? section.dataset.zone : document.documentElement.dataset.shownZone) || "UTC";
  const nets = ["webhook", "poll", "reconcile", "replay", "sync"];
  const times = ["submit50", "submit95", "vendor50", "vendor95"];
  const charts = [];
  const height = 190;

  // ---- Words ----

  const { lang } = document.documentElement;
  const format = (options) => new Intl.DateTimeFormat(lang === "en" ? "en-GB" : lang || undefined, { timeZone: zone, hourCycle: "h23", ...options });
  const dayText = format({ weekday: "short", day: "numeric", month: "short" });
  const shortDay = format({ day: "numeric", month: "short" });
  const hourText = format({ day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const clockText = format({ hour: "2-digit", minute: "2-digit" });
  const hourOf = format({ hour: "numeric" });

  function seconds(value) {
    if (value < 1) return `${Math.round(value * 1000)} ms`;
    if (value < 60) return `${Number(value.toPrecision(2))} s`;
    if (value < 3600) return `${Number((value / 60).toPrecision(2))} min`;
    if (value < 86400) return `${Number((value / 3600).toPrecision(2))} h`;
    return `${Number((value / 86400).toPrecision(2))} d`;
  }

  // ---- Figures ----

  function read() {
    const rows = [...section.querySelectorAll("[data-series] tbody tr")];
    const figures = { at: rows.map((row) => Number(row.dataset.at)), texts: [] };
    for (const name of ["stored", ...nets, ...times]) {
      figures[name] = rows.map((row) => {
        const value = row.querySelector(`[data-s="${name}"]`).dataset.v;
        return value === "" ? null : Number(value);
      });
    }
    return figures;
  }

  // Each net stands on the ones before it; the tallest is drawn first, and so behind. One that brought nothing isn't drawn:
  // its edge would show.
  function stacked(figures) {
    const sums = figures.at.map(() => 0);
    const layers = nets.map((net) => figures[net].map((value, i) => (value ? (sums[i] += value) : null)));
    return [figures.at, ...layers.reverse()];
  }

  const lines = (figures) => [figures.at, ...times.map((name) => figures[name].map((value) => (value === null ? null : Math.max(value, 0.01))))];

  // ---- Looks ----

  const probe = document.createElement("span");
  probe.hidden = true;
  section.append(probe);

  // Canvases know no custom properties: an element says what one comes to.
  function color(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  function axis(more) {
    return { stroke: () => color("soft"), grid: { stroke: () => color("line"), width: 1 }, ticks: { stroke: () => color("line"), width: 1 }, font: "12px system-ui, sans-serif", ...more };
  }

  function timeAxis() {
    return axis({
      space: byDay ? 64 : 52,
      size: 30,
      splits: (plot) => timeSplits(plot.width),
      values: (_, splits) => splits.map((at) => {
        const date = new Date(at * 1000);
        return byDay || Number(hourOf.format(date)) === 0 ? shortDay.format(date) : clockText.format(date);
      }),
    });
  }

  // Marks stand at rows, as far apart as there is room for.
  function timeSplits(plotWidth) {
    const { at } = figures;
    const room = Math.max(1, Math.floor(plotWidth / 75));
    const step = [1, 2, 3, 6, 12, 24].find((each) => at.length / each <= room) || 24;
    return at.filter((each, i) => (byDay ? i % step === 0 : Number(hourOf.format(new Date(each * 1000))) % step === 0));
  }

  const width = (holder) => Math.max(200, holder.clientWidth);
  const cursor = { drag: { x: false, y: false }, y: false, points: { show: false }, sync: { key: "overview" } };
  const hooks = { setCursor: [(plot) => tell(plot.cursor.idx)] };
  const half = byDay ? 43200 : 1800;
  const scaleX = { time: false, range: () => [figures.at[0] - half, figures.at[figures.at.length - 1] + half] };

  function storedChart(holder) {
    const bars = uPlot.paths.bars({ size: [0.8, 40], align: 0 });
    return new uPlot({
      width: width(holder), height, cursor, hooks, legend: { show: false }, padding: [8, 24, 0, 0],
      scales: { x: scaleX, y: { range: (_, __, max) => [0, Math.max(4, max * 1.05)] } },
      axes: [timeAxis(), axis({ size: 52, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6], values: (_, splits) => splits.map((value) => value.toLocaleString()) })],
      series: [{}, ...[...nets].reverse().map((net) => ({ label: net, paths: bars, points: { show: false }, width: 0, fill: () => color(net) }))],
    }, stacked(figures), holder);
  }

  // Marks that people know, as far apart as their words are high: the closer ones where the others would be few.
  const fewMarks = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10800, 43200, 86400, 259200, 604800];
  const moreMarks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 43200, 86400, 172800, 432000];

  function timesBetween(min, max) {
    const few = marksBetween(fewMarks, min, max);
    return few.length >= 5 ? few : marksBetween(moreMarks, min, max);
  }

  function marksBetween(known, min, max) {
    const apart = (Math.log(max / min) * 18) / (height - 40);
    const marks = [];
    for (const each of known) {
      if (each < min || each > max) continue;
      if (marks.length === 0 || Math.log(each / marks[marks.length - 1]) >= apart) marks.push(each);
    }
    return marks;
  }

  function latencyChart(holder) {
    // A median is a full point and what 95 % stay within a ring, so that a single hour can be read too.
    const points = (name, dash) => (dash ? { show: true, size: 8, width: 1.5, fill: () => color("surface") } : { show: true, size: 6, fill: () => color(name) });
    const line = (name, dash) => ({ stroke: () => color(name), width: 2, dash, points: points(name, dash), spanGaps: false });
    return new uPlot({
      width: width(holder), height, cursor, hooks, legend: { show: false }, padding: [8, 24, 0, 0],
      scales: { x: scaleX, y: { distr: 3, range: (_, min, max) => (min === null ? [0.1, 60] : [Math.min(min, max / 10) * 0.8, max * 1.25]) } },
      axes: [timeAxis(), axis({ size: 60, splits: (_, __, min, max) => timesBetween(min, max), filter: (_, splits) => splits, values: (_, splits) => splits.map(seconds) })],
      series: [{}, line("webhook"), line("webhook", [5, 4]), line("poll"), line("poll", [5, 4])],
    }, lines(figures), holder);
  }

  // ---- What the pointer is over, in words ----

  const said = section.querySelector("[data-chart-read]");

  function tell(index) {
    if (index === null || index === undefined || !said) {
      if (said) said.textContent = "\u00a0";
      return;
    }
    const date = new Date(figures.at[index] * 1000);
    const cell = (name) => section.querySelectorAll("[data-series] tbody tr")[index].querySelector(`[data-s="${name}"]`).textContent;
    said.textContent = window.rollcallPhrase(
      "%s: %s stored; submit to stored %s, 95 % within %s",
      byDay ? dayText.format(date) : hourText.format(date),
      cell("stored"),
      cell("submit50"),
      cell("submit95"),
    );
  }

  // ---- Drawing ----

  // Hours are named in the reader's zone; days are the server's sums, in the zone that it named.
  function localize() {
    if (byDay) return;
    for (const name of section.querySelectorAll("[data-series-zone]")) name.textContent = zone;
    for (const each of section.querySelectorAll("[data-series] tbody time")) each.textContent = hourText.format(new Date(each.dateTime));
  }

  let figures = read();

  function draw() {
    section.querySelector("[data-chart-body]").hidden = false;
    for (const holder of section.querySelectorAll("[data-chart]")) {
      const plot = holder.dataset.chart === "stored" ? storedChart(holder) : latencyChart(holder);
      plot.root.setAttribute("aria-hidden", "true"); // The table is what is read out.
      charts.push({ holder, plot, data: holder.dataset.chart === "stored" ? stacked : lines });
    }
  }

  function drawAnew() {
    figures = read();
    if (charts.length === 0 && figures.at.length > 0) return draw();
    for (const { plot, data } of charts) plot.setData(data(figures));
  }

  localize();
  if (figures.at.length > 0) draw();
  new ResizeObserver(() => {
    for (const { holder, plot } of charts) if (plot.width !== width(holder)) plot.setSize({ width: width(holder), height });
  }).observe(section);
  const recolor = () => charts.forEach(({ plot }) => plot.redraw(false, true));
  new MutationObserver(recolor).observe(document.documentElement, { attributes: true, attributeFilter: ["data-bs-theme"] });

  // ---- News: the live part of the page says when the hours were counted anew ----

  const mark = () => document.querySelector("[data-rolled]")?.dataset.rolled || "";
  let rolled = mark();
  let asking = false;

  async function refresh() {
    asking = true;
    try {
      const answer = await fetch(section.dataset.path, { headers: { Accept: "text/html", "HX-Request": "true" } });
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ["overview-counted", "overview-series", "overview-score", "overview-spending", "overview-disk"]) replace(id, page);
      localize();
      drawAnew();
    } catch {
      // The next count asks again.
    } finally {
      asking = false;
    }
  }

  // What is open stays open.
  function replace(id, page) {
    const here = document.getElementById(id);
    const fresh = page.getElementById(id);
    if (!here || !fresh) return;
    const open = [...here.querySelectorAll("details[open][data-keep]")].map((each) => each.dataset.keep);
    here.replaceChildren(...fresh.childNodes);
    for (const each of here.querySelectorAll("details[data-keep]")) each.open = open.includes(each.dataset.keep);
  }

  const verdict = document.getElementById("overview-verdict");
  if (verdict) {
    new MutationObserver(() => {
      const now = mark();
      if (asking || document.hidden || now === "" || now === rolled) return;
      rolled = now;
      refresh();
    }).observe(verdict, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-rolled"] });
  }
})();
