// The session, as data in the page.

const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);

// Text of peers. It is put into the page as text only, with what cannot be seen made visible.

// The same characters as in `mcp-wire/src/visible.rs`; line breaks and tabs are for the caller.
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const code = c => "⟨U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "⟩";
const symbol = c => c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : c === "\x7f" ? "␡" : code(c);
const visible = text => String(text).replace(/[\n\t]/g, symbol).replace(HIDDEN, symbol);

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Appends text; what was hidden in it stands out. */
function appendText(parent, text, className) {
  let from = 0;
  const put = (part, name) => part && parent.append(name ? element("span", { class: name, text: part }) : part);
  for (const found of text.matchAll(HIDDEN)) {
    put(text.slice(from, found.index), className);
    put(symbol(found[0]), "odd");
    from = found.index + found[0].length;
  }
  put(text.slice(from), className);
}

// Numbers for people.

const duration = us => us < 1000 ? us + " µs" : us < 1e4 ? (us / 1e3).toFixed(1) + " ms" : us < 1e6 ? Math.round(us / 1e3) + " ms"
  : us < 12e7 ? (us / 1e6).toFixed(1) + " s" : us < 72e8 ? (us / 6e7).toFixed(0) + " min" : (us / 36e8).toFixed(1) + " h";
const size = bytes => bytes < 1024 ? bytes + " B" : bytes < 1048576 ? (bytes / 1024).toFixed(1) + " K" : (bytes / 1048576).toFixed(1) + " M";
const count = (number, one, many = one + "s") => number.toLocaleString("en") + " " + (number === 1 ? one : many);
