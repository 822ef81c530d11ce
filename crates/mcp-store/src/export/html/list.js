// What is shown now.

const ROW = 28;
const span = [0, Math.max(1, data.end_at, ...rows.slice(-1).map(row => row.until))];
for (const row of rows) span[1] = Math.max(span[1], row.until);
let test = null, range = null, shown = [], chosen = null, breaks = false;

const isInRange = row => !range || (row.at <= range[1] && row.until >= range[0]);
const fits = row => !test || (row.exchange ? test(exchangeAsMessage(row.exchange)) : row.messages.some(test));

function refresh() {
  for (const row of rows) row.fits = fits(row);
  shown = rows.filter(row => row.fits && isInRange(row));
  shown.forEach((row, index) => { row.index = index; });
  $("count").textContent = shown.length === rows.length ? count(rows.length, "row") : shown.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en");
  $("room").style.height = shown.length * ROW + "px";
  $("range").hidden = !range;
  if (range) $("range").textContent = `${duration(Math.round(range[0]))} – ${duration(Math.round(range[1]))} ✕`;
  drawRows(true);
  if (!chosen || !shown.includes(chosen)) choose(shown[0] ?? null, true);
  else drawWaterfall();
}

function applyFilter() {
  try {
    test = parse($("filter").value);
    $("fault").textContent = "";
    $("filter").setAttribute("aria-invalid", "false");
    refresh();
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    // The last good filter stays.
    $("fault").textContent = fault.message;
    $("filter").setAttribute("aria-invalid", "true");
  }
}

// The list: only the rows that can be seen are in the page.

const list = $("list"), drawn = new Map();

function drawRows(anew) {
  if (anew) { drawn.forEach(made => made.remove()); drawn.clear(); }
  const from = Math.max(0, Math.floor(list.scrollTop / ROW) - 8);
  const to = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 8);
  for (const [index, made] of drawn) if (index < from || index >= to) { made.remove(); drawn.delete(index); }
  for (let index = from; index < to; index++) {
    if (drawn.has(index)) continue;
    const made = rowElement(shown[index], index);
    drawn.set(index, made);
    $("room").append(made);
  }
  $("empty")?.remove();
  if (!shown.length) list.append(element("p", { id: "empty", class: "empty", text: rows.length ? "Nothing fits. Esc clears the filter." : "There is no message in this session." }));
}

function rowElement(row, index) {
  const { first, exchange } = row;
  const what = element("span");
  if (exchange) what.append(element("span", { class: "quiet", text: visible(`${exchange.method || "exchange " + exchange.x} ${exchange.target || ""}`) }));
  else if (first.event !== undefined) what.append(element("span", { class: "bad", text: visible(first.event) }));
  else if (first.method) {
    what.append(element("b", { text: visible(first.method) }));
    if (first.name !== undefined) what.append(" ", element("span", { class: "about", text: visible(first.name) }));
  } else what.append(element("span", { class: "quiet", text: visible((first.raw || "").slice(0, 160)) }));
  const title = what.textContent;
  const total = row.messages.reduce((sum, message) => sum + message.size, 0);
  const direction = exchange ? " " : first.dir === 0 ? "→" : "←";
  const made = element("div", { class: "row", role: "option", id: "row-" + index, "aria-selected": String(row === chosen), "aria-posinset": index + 1, "aria-setsize": shown.length,
      "aria-label": `${exchange ? "exchange" : "number " + first.seq}, ${first?.dir === 0 ? "client to server" : "server to client"}, ${title}, ${row.word}`, onclick: () => { choose(row); list.focus({ preventScroll: true }); } },
    element("span", { text: exchange ? "" : first.seq }),
    element("span", { class: first?.dir === 0 ? "out" : "in", text: direction }),
    what,
    element("span", { class: row.tone, text: visible(row.word) }),
    element("span", { text: row.answer && row.answer.took !== undefined ? duration(row.answer.took) : "" }),
    element("span", { text: exchange ? "" : size(total) }),
    whenElement(row));
  made.style.top = index * ROW + "px";
  what.title = title;
  return made;
}

function whenElement(row) {
  const [from, to] = range || span;
  const place = at => Math.min(100, Math.max(0, (at - from) / (to - from) * 100));
  const isPoint = row.until <= row.at;
  const bar = element("i", { class: row.tone + (isPoint ? " point" : "") });
  bar.style.left = `min(${place(row.at)}%, calc(100% - 3px))`;
  if (!isPoint) bar.style.width = place(row.until) - place(row.at) + "%";
  return element("span", { class: "when", title: "after " + duration(Math.round(row.at)) }, bar);
}
