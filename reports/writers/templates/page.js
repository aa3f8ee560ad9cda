"use strict";
// Legends that hide and isolate, figures that read values, tables that sort and copy. Without it the page is complete.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const shown = (value) => value === null ? "–" : String(Number(value.toPrecision(3)));

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // A spreadsheet takes text that begins like this for a formula.
  const inert = (value) => /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? "'" + value : value;
  const field = (value) => /[",\n]/.test(value) ? '"' + value.replaceAll('"', '""') + '"' : value;
  const csv = (rows) => rows.map((row) => row.map((one) => field(one === null ? "" : inert(String(one)))).join(",")).join("\n") + "\n";

  // ---- legends: each rules the figure it stands in, or all figures of its gallery
  const named = (button) => button.textContent.trim();
  for (const legend of all(".legend")) {
    const home = legend.parentElement;
    const figures = home.matches("figure") ? [home] : all("figure", home);
    const buttons = all("button", legend);
    const hidden = new Set();

    function apply() {
      for (const button of buttons) button.setAttribute("aria-pressed", String(!hidden.has(named(button))));
      for (const figure of figures) figure.dispatchEvent(new CustomEvent("hide", { detail: hidden }));
    }
    function toggle(name) { hidden.has(name) ? hidden.delete(name) : hidden.add(name); apply(); }
    function isolate(name) {
      const alone = hidden.size === buttons.length - 1 && !hidden.has(name);
      hidden.clear();
      if (!alone) buttons.map(named).forEach((other) => { if (other !== name) hidden.add(other); });
      apply();
    }
    // The filter of the page: show these methods only, or all; a legend without any of them stays as it is.
    legend.addEventListener("methods", ({ detail: wanted }) => {
      const names = buttons.map(named);
      if (wanted && !names.some((name) => wanted.has(name))) return;
      hidden.clear();
      names.forEach((name) => { if (wanted && !wanted.has(name)) hidden.add(name); });
      apply();
    });
    for (const button of buttons) {
      button.disabled = false;
      button.title = "Click: hide or show. Double-click or Shift+click: show only this one.";
      button.addEventListener("click", (event) => event.shiftKey ? isolate(named(button)) : toggle(named(button)));
      button.addEventListener("dblclick", () => { isolate(named(button)); });
    }
  }

  // A figure that leaves the page takes its legend along: lines of entries above the drawing, in its own units.
  function head(svg, entries) {
    const { width, height } = svg.viewBox.baseVal, line = 14;
    const places = [];
    let x = 0, row = 0;
    for (const entry of entries) {
      const room = 44 + 5.5 * named(entry).length;
      if (x && x + room > width) { x = 0; row += 1; }
      places.push([entry, x, row]);
      x += room;
    }
    const top = -(row + 1) * line;
    for (const [entry, left, at] of places) {
      const mark = entry.querySelector("svg").cloneNode(true);
      Object.entries({ x: left, y: top + at * line, width: 28, height: 10 }).forEach((one) => mark.setAttribute(...one));
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      Object.entries({ x: left + 32, y: top + at * line + 8, fill: "currentColor", "font-size": 9, "font-family": "DejaVu Sans, sans-serif" })
        .forEach((one) => text.setAttribute(...one));
      text.textContent = named(entry);
      svg.append(mark, text);
    }
    if (entries.length) svg.setAttribute("viewBox", `0 ${top} ${width} ${height - top}`);
  }

  // ---- figures
  for (const figure of all("figure")) {
    const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const svg = figure.querySelector(".drawing svg");
    const readout = figure.querySelector(".readout");
    let hidden = new Set();
    let spot = null;

    figure.addEventListener("hide", ({ detail: names }) => {
      hidden = names;
      data.methods.forEach((name, m) => {
        for (const group of all(".m" + m, svg.parentElement)) group.style.display = hidden.has(name) ? "none" : "";
      });
      if (spot) read();
    });

    const lines = (panel) => data.lines.filter((line) => line.panel === panel && !hidden.has(line.name));
    const xs = (panel) => [...new Set(lines(panel).flatMap((line) => data.xs[line.x]))].sort((a, b) => a - b);

    // Where an x value stands in the SVG; with equal places, its rank among all x values of the figure counts.
    const ranks = [...new Set(data.lines.flatMap((line) => data.xs[line.x]))].sort((a, b) => a - b);
    function place(panel, x) {
      const { box, x: [low, high] } = data.panels[panel];
      const at = data.places ? ranks.indexOf(x) : x;
      return box[0] + (at - low) / (high - low) * (box[2] - box[0]);
    }
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "path");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);

    // A heat map: one line per row, from the top down, in blocks of equal height.
    function readRow(px, py) {
      const { box, x: [low, high] } = data.panels[0];
      if (px < box[0] || px > box[2] || py < box[1] || py > box[3]) { readout.textContent = ""; return; }
      const down = Math.min((py - box[1]) / (box[3] - box[1]), 1 - 1e-9) * data.blocks.length;
      const block = Math.floor(down);
      const above = data.blocks.slice(0, block).reduce((sum, size) => sum + size, 0);
      const line = data.lines[above + Math.floor((down - block) * data.blocks[block])];
      const x = low + (px - box[0]) / (box[2] - box[0]) * (high - low);
      const far = data.xs[line.x].map((one) => Math.abs(one - x));
      const at = far.indexOf(Math.min(...far));
      readout.textContent = `${line.name}, ${data.xName} ${shown(data.xs[line.x][at])}: ${shown(line.y[at])}`;
    }

    function read() {
      const values = xs(spot.panel);
      if (!values.length) { clear(); return; }
      spot.index = Math.max(0, Math.min(spot.index, values.length - 1));
      const x = values[spot.index];
      const { box, label } = data.panels[spot.panel];
      cursor.setAttribute("d", `M${place(spot.panel, x)} ${box[1]}V${box[3]}`);
      const parts = [];
      for (const line of lines(spot.panel)) {
        const at = data.xs[line.x].indexOf(x);
        if (at < 0 || line.y[at] === null) continue;
        const band = line.low ? ` (${shown(line.low[at])} to ${shown(line.high[at])})` : "";
        parts.push(`${line.name} ${shown(line.y[at])}${band}`);
      }
      readout.textContent = `${label}, ${data.xName} ${shown(x)}: ${parts.join("; ")}`;
      readout.hidden = false;
    }
    function clear() { spot = null; cursor.removeAttribute("d"); readout.textContent = ""; }

    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect();
      const view = svg.viewBox.baseVal;
      const px = (event.clientX - frame.left) / frame.width * view.width;
      const py = (event.clientY - frame.top) / frame.height * view.height;
      if (data.blocks.length) { readRow(px, py); return; }
      const panel = data.panels.findIndex(({ box }) => px >= box[0] && px <= box[2] && py >= box[1] && py <= box[3]);
      const values = panel < 0 ? [] : xs(panel);
      if (!values.length) { clear(); return; }
      const far = values.map((x) => Math.abs(place(panel, x) - px));
      spot = { panel, index: far.indexOf(Math.min(...far)) };
      read();
    });
    svg.addEventListener("pointerleave", clear);
    figure.querySelector(".drawing").addEventListener("keydown", (event) => {
      const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [];
      if (dx === undefined || !data.panels.length || data.blocks.length) return;
      event.preventDefault();
      const panel = spot ? (spot.panel + dy + data.panels.length) % data.panels.length : 0;
      spot = { panel, index: spot ? spot.index + dx : 0 };
      read();
    });

    const actions = {
      csv() {
        const rows = [["panel", "series", data.xName, data.yName, "low", "high"]];
        for (const line of data.lines) {
          data.xs[line.x].forEach((x, i) => rows.push([data.panels[line.panel].label, line.name, x, line.y[i],
            line.low ? line.low[i] : null, line.high ? line.high[i] : null]));
        }
        save(data.name + ".csv", "text/csv", csv(rows));
      },
      svg() {
        const copy = svg.cloneNode(true);
        all(".cursor", copy).forEach((one) => one.remove());
        const legend = (figure.closest(".gallery") || figure).querySelector(".legend");
        if (legend) head(copy, all("button", legend).filter((one) => data.methods.includes(named(one)) && !hidden.has(named(one))));
        copy.style.color = "#000";
        copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
        save(data.name + ".svg", "image/svg+xml", new XMLSerializer().serializeToString(copy).replace(/var\(--\w+, (#\w+)\)/g, "$1"));
      },
    };
    for (const button of all("button[data-do]", figure)) button.addEventListener("click", actions[button.dataset.do]);
    readout.hidden = false;
  }

  // ---- tables
  for (const holder of all(".table")) {
    const table = holder.querySelector("table");
    const body = table.tBodies[0];
    const value = (row, column) => {
      const cell = row.cells[column];
      const number = Number(cell.dataset.v);
      return cell.dataset.v === undefined || Number.isNaN(number) && cell.dataset.v !== "nan" ? cell.textContent : number;
    };
    const compare = (a, b) => {
      if (typeof a === "number" && typeof b === "number") return (Number.isNaN(a) - Number.isNaN(b)) || a - b;
      return String(a).localeCompare(String(b), "en", { numeric: true });
    };
    all("thead th", table).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column)) * (down ? -1 : 1));
        body.append(...rows);
      });
    });
    const rows = () => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
    async function copy(button) {
      const text = rows().map((row) => row.map(inert).join("\t")).join("\n");
      try { await navigator.clipboard.writeText(text); } catch {
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy table"; }, 1500);
    }
    holder.querySelector("[data-do=copy]").addEventListener("click", (event) => copy(event.currentTarget));
    holder.querySelector("[data-do=table-csv]").addEventListener("click",
      () => save(holder.dataset.name + ".csv", "text/csv", csv(rows())));
  }
  for (const tools of all(".tools")) tools.hidden = false;

  // ---- the table of contents: beside the page, or behind a button on narrow screens
  const toc = document.querySelector(".toc");
  if (toc) {
    const button = toc.querySelector("button");
    const show = (open) => { toc.classList.toggle("open", open); button.setAttribute("aria-expanded", String(open)); };
    button.hidden = false;
    toc.classList.add("ready");
    button.addEventListener("click", () => show(!toc.classList.contains("open")));
    const links = new Map(all("a", toc).map((link) => [link.hash.slice(1), link]));
    const seen = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        links.forEach((link, id) => id === target.id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"));
      }
    }, { rootMargin: "0px 0px -85% 0px" });
    links.forEach((link, id) => {
      link.addEventListener("click", () => { show(false); setTimeout(open); });
      seen.observe(document.getElementById(id));
    });
  }

  // A link opens what it leads to, and what that is folded under; the page is laid out before it scrolls there.
  function open() {
    const spot = document.getElementById(location.hash.slice(1));
    if (!spot) return;
    for (let one = spot.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    spot.scrollIntoView();
  }
  addEventListener("hashchange", open);
  addEventListener("load", open);
  addEventListener("beforeprint", () => { for (const one of all("details.section")) one.open = true; });
})();
