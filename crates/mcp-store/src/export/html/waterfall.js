// The picture of all calls: time from left to right, each call below the one before it. What is no call
// is a mark at the bottom.

const canvas = $("waterfall");
// Each call has a line of its own, further down than the one before.
const calls = rows.filter(row => row.until > row.at);
calls.forEach((row, line) => { row.line = line; });

function drawWaterfall() {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.max(1, width * ratio);
  canvas.height = Math.max(1, height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colors = { good: color("--bar-good"), bad: color("--bar-bad"), wait: color("--bar-wait"), quiet: color("--bar-quiet") };
  pen.fillStyle = color("--line");
  for (let tick = 1; tick < 5; tick++) pen.fillRect(Math.round(width * tick / 5), 0, 1, height);
  const x = at => 6 + (at - span[0]) / (span[1] - span[0]) * (width - 12);
  const room = height - 16, step = room / Math.max(calls.length, 9), thick = Math.min(9, Math.max(2, step - 1));
  // What fits comes last and stands above the rest; so do errors.
  const order = row => (row.fits && isInRange(row) ? 2 : 0) + (row.tone === "bad" ? 1 : 0);
  for (const row of [...rows].sort((a, b) => order(a) - order(b))) {
    pen.globalAlpha = row.fits && isInRange(row) ? 1 : 0.16;
    pen.fillStyle = colors[row.tone];
    const left = x(row.at);
    if (row.line === undefined) pen.fillRect(left - 1, height - 8, 2, 5);
    else pen.fillRect(left, 4 + row.line * step, Math.max(2, x(row.until) - left), thick);
  }
  pen.globalAlpha = 1;
  if (chosen) {
    pen.fillStyle = color("--accent");
    pen.fillRect(x(chosen.at) - 0.5, 0, 1.5, height);
  }
  const errors = rows.filter(row => row.tone === "bad").length;
  canvas.setAttribute("aria-label", `${count(rows.filter(row => row.request).length, "call")} over ${duration(Math.round(span[1]))}, ${count(errors, "error")}; the list below has each of them`);
}

const timeAt = event => {
  const box = canvas.getBoundingClientRect();
  return span[0] + Math.min(1, Math.max(0, (event.clientX - box.left - 6) / (box.width - 12))) * (span[1] - span[0]);
};
let drag = null;
canvas.addEventListener("pointerdown", event => { drag = { x: event.clientX, from: timeAt(event) }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", event => {
  if (!drag) return;
  const box = canvas.getBoundingClientRect(), left = Math.max(box.left, Math.min(drag.x, event.clientX)), right = Math.min(box.right, Math.max(drag.x, event.clientX));
  $("brush").hidden = false;
  $("brush").style.left = left - box.left + "px";
  $("brush").style.width = right - left + "px";
});
canvas.addEventListener("pointerup", event => {
  if (!drag) return;
  const to = timeAt(event), isClick = Math.abs(event.clientX - drag.x) < 4;
  range = isClick ? null : [Math.min(drag.from, to), Math.max(drag.from, to)];
  if (isClick) $("brush").hidden = true;
  drag = null;
  refresh();
});
const clearRange = () => { range = null; $("brush").hidden = true; refresh(); };
$("range").addEventListener("click", clearRange);
