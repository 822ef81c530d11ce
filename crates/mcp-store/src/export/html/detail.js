// What is chosen, in full.

function choose(row, scroll) {
  const before = chosen;
  chosen = row;
  for (const one of [before, row]) {
    const made = one && one.index !== undefined && shown[one.index] === one && drawn.get(one.index);
    if (made) made.setAttribute("aria-selected", String(one === row));
  }
  if (row && scroll) {
    const top = row.index * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
    drawRows();
  }
  if (row) {
    list.setAttribute("aria-activedescendant", "row-" + row.index);
    if (row.first) history.replaceState(null, "", "#" + row.first.seq);
  } else list.removeAttribute("aria-activedescendant");
  showDetail();
  drawWaterfall();
}

const clock = at => new Date(data.started_ms + at / 1000).toISOString().replace("T", " ").replace("Z", "");

function showDetail() {
  const detail = $("detail");
  detail.replaceChildren();
  detail.scrollTop = 0;
  if (!chosen) {
    detail.append(element("p", { class: "empty", text: "Choose a row to read it: with the mouse, or with j and k." }));
    return;
  }
  const { first, request, answer, exchange } = chosen;
  const heading = element("h2");
  appendText(heading, exchange ? `${exchange.method || "exchange"} ${exchange.target || exchange.x}` : first.event !== undefined ? "Instead of a message" : [first.method || first.kind, first.name].filter(Boolean).join("  "));
  const about = exchange ? [] : ["#" + first.seq + (answer && request ? " → #" + answer.seq : ""), first.id !== undefined && "id " + first.id, first.conv && "conversation " + first.conv + (first.upstream ? " with " + first.upstream : ""), first.parent && "made of #" + first.parent, first.transport];
  if (answer?.took !== undefined) about.push("took " + duration(answer.took));
  about.push(clock(chosen.at) + " UTC");
  detail.append(heading, element("p", { class: "sub" }, element("span", { class: chosen.tone, text: visible(chosen.word) }), " · " + visible(about.filter(Boolean).join(" · "))));
  if (answer?.message) detail.append(callout(answer.message));
  if (chosen.fate) detail.append(callout(chosen.fate.ended || "HTTP " + chosen.fate.status));
  if (exchange) {
    if (exchange.ended) detail.append(callout(exchange.ended));
    detail.append(exchangePane(exchange));
    return;
  }
  for (const message of chosen.messages) detail.append(...panes(message, chosen));
  if (chosen.fate) detail.append(exchangePane(chosen.fate));
  else if (request && !answer) detail.append(element("p", { class: "empty", text: "No answer is in this export." }));
}

function callout(text) {
  const made = element("p", { class: "callout" });
  appendText(made, text);
  return made;
}

function panes(message, row) {
  const who = message.proxy ? "The proxy" : message.dir === 0 ? "The client" : "The server";
  const verb = message === row.answer && row.request ? "answered" : message.kind === "request" ? "asked" : message.kind === "noise" ? "printed" : "said";
  const made = [];
  if (message.original !== undefined) made.push(pane(`${who} ${verb}`, message, message.original, ""), pane("This was changed to", message, message.raw, ""));
  else if (message.event !== undefined) made.push(pane("The proxy noted", message, message.event, ""));
  else made.push(pane(`${who} ${verb}`, message, message.raw, message.opaque ? "opaque: " + message.opaque : ""));
  for (const remark of remarks(message)) {
    const line = element("p", { class: "sub" });
    appendText(line, remark);
    made.push(line);
  }
  return made;
}

const VERDICTS = { allow: "allowed", deny: "denied", ask: "asked about", observe: "observed" };

/** What rules decided about a message, what became of it if it was held, and what somebody wrote beside it. */
function remarks(message) {
  const made = [];
  if (message.verdict !== undefined) made.push(`#${message.seq} was ${VERDICTS[message.verdict] || message.verdict}` + (message.rule === undefined ? "" : " by the rule " + message.rule) + (message.op ? " as " + message.op : "") + (message.audit_id ? " (audit " + message.audit_id + ")" : ""));
  if (message.held) made.push(`#${message.seq} was held` + (message.held_for === undefined ? "" : " for " + duration(message.held_for)) + (message.outcome ? ", " + message.outcome : "") + (message.by ? " by " + message.by : "") + (message.why ? ": " + message.why : ""));
  if (message.mark !== undefined) made.push(`#${message.seq} is marked ` + message.mark);
  if (message.note !== undefined) made.push(message.note);
  return made;
}

function pane(title, message, text, remark) {
  const facts = [clock(message.at).slice(11), size(message.size), message.event_id && "event id " + message.event_id, remark].filter(Boolean).join(" · ");
  const copy = element("button", { type: "button", text: "copy", onclick: () => copyText(text, copy) });
  const lines = element("button", { type: "button", "aria-pressed": String(breaks), title: "Show line breaks inside strings as such (l)", text: "¶", onclick: toggleBreaks });
  const made = element("div", { class: "pane" }, element("h3", {}, title, element("span", { text: visible(facts) }), lines, copy));
  const exchange = exchanges.get(message.exchange);
  if (exchange) made.append(headersOf(exchange, message.dir === 0));
  const pre = element("pre", { tabindex: "0" });
  showJson(pre, text);
  if (message.cut) pre.append(element("span", { class: "wait", text: `\n… the rest of ${size(message.size)} is left out of this page` }));
  made.append(pre);
  return made;
}

function exchangePane(exchange) {
  const made = element("div", { class: "pane" }, element("h3", {}, "HTTP exchange " + exchange.x));
  made.append(headersOf(exchange, true, true), headersOf(exchange, false, true));
  return made;
}

function headersOf(exchange, isRequest, open) {
  const headers = (isRequest ? exchange.request : exchange.answer) || [];
  const line = isRequest ? `${exchange.method || "?"} ${exchange.target || ""}` : `HTTP ${exchange.status ?? "unanswered"}`;
  const table = element("table");
  for (const [name, value] of headers) table.append(element("tr", {}, element("td", { class: "mono", text: visible(name) }), element("td", { class: "mono", text: visible(value) })));
  const made = element("details", { open: open && headers.length > 0 }, element("summary", { class: "mono", text: visible(line) + (headers.length ? ` · ${count(headers.length, "header")}` : "") }));
  made.append(table);
  return made;
}

async function copyText(text, button) {
  try { await navigator.clipboard.writeText(text); }
  catch {
    const area = element("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 1200);
}
