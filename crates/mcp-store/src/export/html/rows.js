// Rows: a call is one row, with its request and its answer; anything else stands alone.

const messages = [], exchanges = new Map(), rows = [];
{
  const calls = new Map();
  for (const entry of data.entries) {
    if ("x" in entry) {
      const known = exchanges.get(entry.x) || {};
      exchanges.set(entry.x, Object.assign(known, entry));
      continue;
    }
    const message = entry;
    messages.push(message);
    const call = message.answers !== undefined && calls.get(message.answers);
    if (call && !call.answer) {
      call.answer = message;
      call.messages.push(message);
      continue;
    }
    const row = { first: message, messages: [message], at: message.at };
    if (message.kind === "request") {
      row.request = message;
      calls.set(message.seq, row);
    } else if (message.answers !== undefined) row.answer = message;
    rows.push(row);
  }
  // A call that HTTP turned away or broke off has no answer, but what became of it is known.
  const spokenFor = new Set();
  for (const row of rows) {
    const exchange = exchanges.get(row.first.exchange);
    if (row.request && !row.answer && wentWrong(exchange)) row.fate = exchange;
    if (exchange && (row.fate || !wentWrong(exchange))) spokenFor.add(exchange.x);
  }
  for (const exchange of exchanges.values())
    if (exchange.at !== undefined && !spokenFor.has(exchange.x)) rows.push({ exchange, messages: [], at: exchange.at });
  rows.sort((a, b) => a.at - b.at);
  for (const row of rows) Object.assign(row, outcome(row));
}

function wentWrong(exchange) { return exchange && (exchange.status >= 400 || exchange.ended); }

function outcome(row) {
  const http = row.exchange || row.fate;
  if (http) {
    const word = http.status >= 400 ? "✗ " + http.status : http.ended ? "✗ broken" : "· " + (http.status ?? "unanswered");
    return { tone: wentWrong(http) ? "bad" : "quiet", word, until: http.until ?? http.at ?? row.at };
  }
  const { first, answer } = row;
  if (first.kind === "event") return { tone: "bad", word: "✗ event", until: first.at };
  if (first.kind === "noise") return { tone: "quiet", word: "· noise", until: first.at };
  if (answer) {
    const until = answer.at;
    if (first.verdict === "deny") return { tone: "bad", word: "✗ denied", until };
    if (answer.status === "err") return { tone: "bad", word: "✗ " + (answer.code ?? (answer.tool_error ? "tool error" : "error")), until };
    if (answer.status === "input_required") return { tone: "wait", word: "↻ input", until };
    return { tone: "good", word: "✓ ok", until };
  }
  if (first.verdict === "deny") return { tone: "bad", word: "✗ denied", until: first.at };
  if (first.kept_back) return { tone: "bad", word: "⏸ " + (first.outcome || "held"), until: first.at + (first.held_for || 0) };
  if (row.request) return { tone: "wait", word: "… no answer", until: data.end_at };
  return { tone: "quiet", word: "· " + (first.kind === "notification" ? "notify" : first.kind), until: first.at };
}
