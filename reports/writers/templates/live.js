"use strict";
// A live page asks whether its runs have advanced; then it is loaded again, where it was, with what was open.
(() => {
  const key = "vcpo-bench " + location.pathname;
  const kept = JSON.parse(sessionStorage.getItem(key) || "null");
  if (kept) {
    for (const id of kept.open) { const one = document.getElementById(id); if (one) one.open = true; }
    scrollTo({ top: kept.y, behavior: "instant" });
    sessionStorage.removeItem(key);
  }
  const ask = async () => (await fetch("state", { cache: "no-store" })).text();
  let seen = null;
  async function look() {
    try {
      const now = await ask();
      if (seen !== null && now !== seen) {
        const open = [...document.querySelectorAll("details[open][id]")].map((one) => one.id);
        sessionStorage.setItem(key, JSON.stringify({ open, y: scrollY }));
        location.reload();
      }
      seen = now;
    } catch { /* the server has ended: the page stays as it is */ }
  }
  look();
  setInterval(look, 3000);
})();
