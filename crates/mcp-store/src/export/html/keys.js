// Keys.

function move(by) {
  if (!shown.length) return;
  const index = chosen ? chosen.index + by : by > 0 ? 0 : shown.length - 1;
  choose(shown[Math.min(shown.length - 1, Math.max(0, index))], true);
}
function moveToError(step) {
  for (let index = (chosen ? chosen.index : step > 0 ? -1 : shown.length) + step; index >= 0 && index < shown.length; index += step)
    if (shown[index].tone === "bad") return choose(shown[index], true);
}
const page = () => Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
const KEYS = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), PageDown: () => move(page()), PageUp: () => move(-page()),
  g: () => move(-Infinity), Home: () => move(-Infinity), G: () => move(Infinity), End: () => move(Infinity), e: () => moveToError(1), E: () => moveToError(-1),
  Enter: () => chosen && $("detail").focus(), "/": () => { $("filter").focus(); $("filter").select(); }, t: toggleTheme, l: toggleBreaks, "?": toggleHelp,
  c: () => document.querySelector("#detail .pane:last-of-type button:last-of-type")?.click(),
  Escape: () => { if (!$("help").hidden) toggleHelp(); else if (range) clearRange(); else if ($("filter").value) { $("filter").value = ""; applyFilter(); } else choose(null); },
};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === $("filter")) {
    if (event.key === "Escape") { if ($("filter").value) { $("filter").value = ""; applyFilter(); } else list.focus(); event.preventDefault(); }
    if (event.key === "Enter" || event.key === "ArrowDown") { list.focus(); move(chosen ? 0 : 1); event.preventDefault(); }
    return;
  }
  if ($("detail").contains(event.target)) {
    if (event.key === "Escape") { list.focus(); event.preventDefault(); return; }
    if (/^(Arrow|Page|Home|End|Enter| )/.test(event.key)) return;
  }
  if (/^(BUTTON|SUMMARY)$/.test(event.target.tagName) && (event.key === "Enter" || event.key === " ")) return;
  const act = KEYS[event.key];
  if (act) { act(); event.preventDefault(); }
});
function toggleHelp() {
  $("help").hidden = !$("help").hidden;
  $("help-button").setAttribute("aria-expanded", String(!$("help").hidden));
  refresh();
}
function toggleTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  drawWaterfall();
}
