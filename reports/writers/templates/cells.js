"use strict";
// Axes for the curves of a cell, drawn when its page is first opened: a page of 1,000 cells holds curves and scales only.
(() => {
  const LEFT = 44, BOTTOM = 30, TOP = 14, RIGHT = 10;
  const SVG = "http://www.w3.org/2000/svg";

  function element(parent, name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
  }

  const words = (value) => {
    const size = Math.abs(value);
    return size !== 0 && (size < 0.001 || size >= 100000) ? value.toExponential(0) : String(Number(value.toPrecision(2)));
  };

  // Round values between two ends, about `count` of them.
  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const found = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(6)));
    return found;
  }

  // Powers of ten, thinned; with less than two of them also 2 and 5 times, then whatever the ends are.
  function logTicks(low, high) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const inside = (value) => value >= low * 0.999 && value <= high * 1.001;
    const powers = [];
    for (let one = first; one <= last; one += Math.ceil((last - first) / 5) || 1) powers.push(10 ** one);
    const whole = powers.filter(inside);
    if (whole.length > 1) return whole;
    const finer = powers.flatMap((one) => [one, 2 * one, 5 * one]).filter(inside);
    return finer.length > 1 ? finer : [low, high];
  }

  function draw(svg) {
    const [last, low, high, log, onset, asked] = JSON.parse(svg.dataset.scales);
    const { width, height } = svg.viewBox.baseVal;
    const level = (value) => log ? Math.log10(value) : value;
    const span = level(high) - level(low);
    const y = (value) => (height - 2) * (1 - (span > 0 ? (level(value) - level(low)) / span : 0)) + 1;
    const x = (value) => width * value / last;
    svg.setAttribute("viewBox", `${-LEFT} ${-TOP} ${width + LEFT + RIGHT} ${height + TOP + BOTTOM}`);
    element(svg, "path", { class: "frame", d: `M0 0V${height}H${width}` });
    const values = span > 0 ? (log ? logTicks(low, high) : ticks(low, high, 4)) : [low];
    for (const value of values) {
      element(svg, "path", { class: "frame", d: `M-3 ${y(value)}H0` });
      element(svg, "text", { x: -6, y: y(value) + 3.5, "text-anchor": "end" }, words(value));
    }
    for (const value of ticks(0, last, 5)) {
      element(svg, "path", { class: "frame", d: `M${x(value)} ${height}v3` });
      element(svg, "text", { x: x(value), y: height + 14, "text-anchor": "middle" }, String(value));
    }
    element(svg, "text", { x: width / 2, y: height + 27, "text-anchor": "middle" }, "optimizer update");
    if (onset !== null) {
      const side = x(onset) > width / 2 ? "end" : "start";
      element(svg, "text", { class: "onset-label", x: x(onset), y: -4, "text-anchor": side }, `onset, update ${onset}`);
    }
    if (asked !== null) {
      element(svg, "path", { class: "asked", d: `M0 ${y(asked)}H${width}` });
      element(svg, "text", { x: width - 2, y: y(asked) + (y(asked) < 14 ? 12 : -4), "text-anchor": "end" }, `requested ${asked}`);
    }
  }

  for (const cell of document.querySelectorAll("details.cell")) {
    const open = () => { if (cell.open) { cell.removeEventListener("toggle", open); cell.querySelectorAll(".spark").forEach(draw); } };
    cell.addEventListener("toggle", open);
  }
})();
