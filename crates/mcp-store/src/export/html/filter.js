// The filter: a part of the language that the commands know. What it does not know is an error that
// says so, never another meaning.

const WAYS = ["client_to_server", "server_to_client"];
const FIELDS = {
  dir: { words: WAYS, get: m => WAYS[m.dir] },
  kind: { words: ["request", "response", "error", "notification", "batch", "json", "bytes", "noise", "event"], get: m => m.kind === "error" ? ["error", "response"] : m.kind },
  method: { get: m => m.method },
  tool: { get: m => m.name },
  status: { words: ["ok", "err", "input_required"], get: m => m.status },
  code: { units: { "": 1 }, get: m => m.code },
  id: { get: m => m.id === undefined ? undefined : [m.id, m.id.replace(/^"(.*)"$/s, "$1")] },
  dur: { units: { ns: 0.001, us: 1, "µs": 1, ms: 1e3, s: 1e6, m: 6e7, h: 3.6e9 }, get: m => m.took, such: "200ms or 1.5s" },
  size: { units: { "": 1, b: 1, k: 1024, kb: 1024, m: 1048576, mb: 1048576, g: 1073741824 }, get: m => m.size, such: "512 or 10k" },
  seq: { units: { "": 1 }, get: m => m.seq },
  text: { get: m => m.raw ?? m.event, isSearched: true },
  held: { words: ["yes", "no"], get: m => m.held ? "yes" : "no" },
  edited: { words: ["yes", "no"], get: m => m.original === undefined ? "no" : "yes" },
  mark: { get: m => m.mark },
  noise: { words: ["yes", "no"], get: m => m.kind === "noise" ? "yes" : "no" },
};
const OTHERS = ["server", "client", "op", "header", "era", "rule", "verdict", "origin", "replay"];

class Fault extends Error {}

const TOKEN = new RegExp([
  /\s*(?:([()!]))/, /\s*\/((?:\\.|[^/\\])+)\/(i?)(?=\s|\)|$)/, /\s*([<>])(?=\s|\(|$)/,
  /\s*(\$?[a-z][\w.]*)\s?(!=|>=|<=|\^=|[:=~<>])\s?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\/(?:\\.|[^/\\])+\/i?|[^\s()]*)/,
  /\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')/, /\s*([^\s()"'!]+)/,
].map(one => one.source).join("|"), "iuy");

function tokens(text) {
  const found = [];
  let at = 0;
  while (text.slice(at).trim()) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) throw new Fault("cannot be read from “" + text.slice(at).trim() + "” on");
    at = TOKEN.lastIndex;
    const [, mark, regex, flag, arrow, field, op, value, quoted, word] = match;
    if (mark) found.push({ mark });
    else if (regex !== undefined) found.push({ test: anywhere(regexOf(regex, flag)) });
    else if (arrow) found.push({ test: m => m.dir === (arrow === ">" ? 0 : 1) });
    else if (field) found.push({ test: comparison(field, op, value) });
    else if (quoted !== undefined) found.push({ test: anywhere(contains(unquote(quoted))) });
    else if (/^(and|or|not)$/i.test(word)) found.push({ mark: word.toLowerCase() });
    else if (word.startsWith("$")) throw new Fault("paths such as " + word + " are for the commands; this page takes words and fields");
    else found.push({ test: anywhere(word.includes("*") ? regexOf(word.split("*").map(escaped).join("[^]*"), "i") : contains(word)) });
  }
  return found;
}

const isQuoted = text => /^(".*"|'.*')$/s.test(text);
const unquote = text => isQuoted(text) ? text.slice(1, -1).replace(/\\(.)/gs, (all, c) => ({ n: "\n", r: "\r", t: "\t" })[c] ?? c) : text;
const escaped = text => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
function regexOf(source, flags) {
  try { return new RegExp(source, flags + "u"); } catch { throw new Fault("not a regular expression: " + source); }
}
const contains = text => ({ test: (low => part => part.toLowerCase().includes(low))(text.toLowerCase()) });
const anywhere = test => m => [m.method, m.name, m.raw, m.event].some(part => part && test.test(part));

/** The values that would be written so: 200ms is from 200 up to 201. */
function numbers(text, field) {
  const { units, such } = FIELDS[field];
  const one = part => {
    const match = /^(-?\d+)(\.\d+)?(µ?[a-z]*)$/i.exec(part);
    const unit = match && (field === "size" ? match[3].toLowerCase() : match[3]);
    if (!match || !(unit in units)) throw new Fault(`“${part}” is nothing to compare ${field} with; it takes ${such || "a whole number"}`);
    const step = units[unit] / 10 ** (match[2] || ".").slice(1).length;
    const from = Number(match[1] + (match[2] || "")) * units[unit];
    return step > 1 ? [from, from + step - 0.0001] : [from, from];
  };
  if (!text.includes("..")) return one(text);
  const [from, to] = text.split("..", 2);
  return [from ? one(from)[0] : -Infinity, to ? one(to)[1] : Infinity];
}

function comparison(field, op, text) {
  const known = FIELDS[field];
  if (!known) {
    if (field.startsWith("$")) throw new Fault("paths such as " + field + " are for the commands; this page takes words and fields");
    if (OTHERS.includes(field.split(".")[0])) throw new Fault(`“${field}” is for the commands; this page takes ${Object.keys(FIELDS).join(", ")}`);
    const near = Object.keys(FIELDS).find(name => name[0] === field[0]);
    throw new Fault(`there is no field “${field}”; ` + (near ? `did you mean ${near}?` : `there are ${Object.keys(FIELDS).join(", ")}`));
  }
  if (text === "") throw new Fault(`${field}${op} needs a value`);
  const values = m => [known.get(m)].flat().filter(value => value !== undefined && value !== null);
  const some = test => m => values(m).some(test);
  const value = unquote(text);
  if (/[<>]/.test(op)) {
    if (!known.units) throw new Fault(`${field} is not a number`);
    const [from, to] = numbers(value, field);
    return some({ "<": x => x < from, "<=": x => x <= to, ">": x => x > to, ">=": x => x >= from }[op]);
  }
  if (op === "~") {
    const literal = /^\/(.+)\/(i?)$/s.exec(text);
    const regex = literal ? regexOf(literal[1], literal[2]) : regexOf(value, "");
    return some(x => regex.test(String(x)));
  }
  if (op === "^=") return some(x => String(x).startsWith(value));
  if (known.isSearched) {
    if (op !== ":") throw new Fault(`${field} takes “:” or “~”`);
    return some(contains(value).test);
  }
  if (!isQuoted(text) && text === "*") return some(() => true);
  const wanted = isQuoted(text) || op !== ":" ? [value] : text.split(",").filter(Boolean);
  const unknown = known.words && wanted.find(one => !known.words.includes(one) && !one.includes("*"));
  if (unknown) throw new Fault(`${field} is one of ${known.words.join(", ")}`);
  const tests = wanted.map(one => {
    if (known.units) return (([from, to]) => x => x >= from && x <= to)(numbers(one, field));
    if (op !== ":" || isQuoted(text)) return x => String(x) === one;
    return (regex => x => regex.test(String(x)))(regexOf("^" + one.split("*").map(escaped).join("[^]*") + "$", ""));
  });
  const is = some(x => tests.some(test => test(x)));
  return op === "!=" ? m => !is(m) : is;
}

/** A test for messages, or null if there is nothing to test. `not` binds closest, then `and`, then `or`. */
function parse(text) {
  const list = tokens(text);
  let at = 0;
  const peek = () => list[at]?.mark;
  const or = () => { let left = and(); while (peek() === "or") { at++; const l = left, r = and(); left = m => l(m) || r(m); } return left; };
  const and = () => {
    let left = not();
    while (at < list.length && peek() !== "or" && peek() !== ")") { if (peek() === "and") at++; const l = left, r = not(); left = m => l(m) && r(m); }
    return left;
  };
  const not = () => {
    if (peek() === "not" || peek() === "!") { at++; const inner = not(); return m => !inner(m); }
    if (peek() === "(") {
      at++;
      const inner = or();
      if (peek() !== ")") throw new Fault("a parenthesis is not closed");
      at++;
      return inner;
    }
    const test = list[at++]?.test;
    if (!test) throw new Fault("something is missing");
    return test;
  };
  if (!list.length) return null;
  const test = or();
  if (at < list.length) throw new Fault("a parenthesis was never opened");
  return test;
}

/** An exchange without messages answers to what it has. */
const exchangeAsMessage = x => ({ dir: 0, kind: "exchange", method: x.method, name: x.target, raw: [x.method, x.target, x.status, x.ended].filter(Boolean).join(" "), status: x.status >= 400 ? "err" : undefined });
