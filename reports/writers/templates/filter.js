// One filter for the whole page, ids to copy, and tables as cards on a phone. Without it everything is shown.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const AXES = ["task", "lag", "lr", "method"];
  const tables = all(".table table").map((table) => {
    const headings = all("thead th", table).map((one) => one.textContent.trim());
    table.classList.add("cards");
    for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, at) => { cell.dataset.label = headings[at]; });
    return { table, places: AXES.map((axis) => headings.indexOf(axis)) };
  });

  // ---- filter
  const form = document.querySelector(".filter");
  const plain = (text) => text.trim().replace(/\*$/, "");
  const cells = all("details.cell");
  const boards = tables.filter(({ table }) => table.closest("#table-scoreboard, .board"));
  const values = AXES.map((axis, at) => {
    const found = boards.filter(({ places }) => places[at] >= 0).flatMap(({ table, places }) => [...table.tBodies[0].rows].map((row) => plain(row.cells[places[at]].textContent)));
    return [...new Set(found)].sort((a, b) => Number(a) - Number(b) || a.localeCompare(b, "en", { numeric: true }));
  });
  const chosen = AXES.map(() => "");
  // A row of another value is left out. What is no value of the axis, such as "all tasks", is about the chosen one too.
  const isOther = (text, at) => text !== chosen[at] && values[at].includes(text);
  const said = document.createElement("output");

  function apply() {
    let rows = 0, kept = 0;
    for (const { table, places } of tables) {
      for (const row of table.tBodies[0].rows) {
        row.hidden = places.some((place, at) => chosen[at] && place >= 0 && isOther(plain(row.cells[place].textContent), at));
        rows += 1;
        kept += !row.hidden;
      }
    }
    for (const cell of cells) cell.hidden = AXES.some((axis, at) => chosen[at] && cell.dataset[axis] !== chosen[at]);
    for (const one of all("main .statement")) {  // what begins with a lag is about it
      const lag = /^Lag (\d+)\b/.exec(one.textContent);
      one.closest("li, p").hidden = Boolean(chosen[1] && lag && lag[1] !== chosen[1]);
    }
    for (const group of all("details.cells")) group.hidden = all(".cell", group).every((cell) => cell.hidden);
    for (const board of all(".board")) board.hidden = all("tbody tr", board).every((row) => row.hidden);
    for (const figure of all("figure")) {
      const task = /\bTask (.+?), regime/.exec(figure.querySelector("figcaption").textContent);
      figure.hidden = Boolean(chosen[0] && task && task[1] !== chosen[0].replace(/ \(.*\)$/, ""));
    }
    for (const legend of all(".legend")) {
      legend.dispatchEvent(new CustomEvent("methods", { detail: chosen[3] ? new Set([chosen[3]]) : null }));
      if (!legend.closest("figure")) legend.hidden = all("figure", legend.parentElement).every((figure) => figure.hidden);
    }
    said.textContent = chosen.some(Boolean) ? `${kept} of ${rows} table rows` : "";
    if (chosen[1]) said.textContent += "; figures show every lag";
    if (chosen[2]) said.textContent += "; figures show every learning rate";
    if (cells.length && chosen.some(Boolean)) said.textContent += `, ${cells.filter((cell) => !cell.hidden).length} of ${cells.length} cells`;
  }

  const menus = AXES.map((axis, at) => {
    const label = document.createElement("label");
    const menu = document.createElement("select");
    menu.name = axis;
    menu.add(new Option("all", ""));
    for (const value of values[at]) menu.add(new Option(value, value));
    menu.addEventListener("change", () => { chosen[at] = menu.value; apply(); });
    label.append(axis + " ", menu);
    if (values[at].length > 1) form.append(label);
    return menu;
  });
  const reset = document.createElement("button");
  reset.type = "button";
  reset.textContent = "Show all";
  reset.addEventListener("click", () => { menus.forEach((menu, at) => { menu.value = chosen[at] = ""; }); apply(); });
  form.append(reset, said);
  form.hidden = !values.some((one) => one.length > 1);

  // ---- ids: a click shows one that can be selected, on touch screens too
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.setAttribute("role", "status");
  toast.hidden = true;
  document.body.append(toast);
  document.addEventListener("click", (event) => {
    const number = event.target.closest("[data-id]");
    if (toast.contains(event.target)) return;
    toast.hidden = !number;
    if (!number) return;
    const command = document.createElement("code");
    command.textContent = `vcpo-bench results trace ${number.dataset.id} DIR`;
    toast.replaceChildren("Its rows: ", command);
  });
})();
