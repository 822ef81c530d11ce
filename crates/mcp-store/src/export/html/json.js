// JSON over several lines, as it was spelled: numbers, escapes and the order of members stay.

const LONG = 4000, DEPTH = 40;

function showJson(parent, text) {
  const trimmed = (text || "").trimStart();
  if (!/^[{[]/.test(trimmed)) { appendText(parent, text || ""); return; }
  const token = /\s+|("(?:\\.|[^"\\])*")(\s*:)?|([{[])(\s*[}\]])?|([}\]])|,|:|[^\s{}[\],:"]+|"/gy;
  let depth = 0, match;
  const newline = () => parent.append("\n" + "  ".repeat(Math.min(depth, DEPTH)));
  while ((match = token.exec(text))) {
    const [all, string, colon, open, close, shut] = match;
    if (string !== undefined) {
      appendString(parent, string, colon !== undefined);
      if (colon !== undefined) parent.append(": ");
    } else if (open) {
      parent.append(open);
      if (close) parent.append(close.trim());
      else { depth++; newline(); }
    } else if (shut) { depth = Math.max(0, depth - 1); newline(); parent.append(shut); }
    else if (all === ",") { parent.append(","); newline(); }
    else if (all === ":") parent.append(": ");
    else if (all.trim()) appendText(parent, all, /^[-\d]/.test(all) ? "n" : "w");
  }
}

function appendString(parent, string, isKey) {
  const name = isKey ? "k" : "s";
  let text = string;
  if (breaks && !isKey) text = string.replace(/\\(\\|n|t|")/g, (all, c) => c === "n" ? "\n" : c === "t" ? "\t" : c === "\\" ? "\\\\" : all);
  if (text.length <= LONG) { appendText(parent, text, name); return; }
  appendText(parent, text.slice(0, LONG / 2), name);
  const rest = text.slice(LONG / 2);
  const more = element("button", { type: "button", class: "more", text: `… ${rest.length.toLocaleString("en")} more`, onclick: () => {
    const whole = element("span");
    appendText(whole, rest, name);
    more.replaceWith(whole);
  } });
  parent.append(more);
}

function toggleBreaks() { breaks = !breaks; showDetail(); }
