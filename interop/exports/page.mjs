// Opens exported pages in a browser: they show what is in them, ask nobody for anything, and nothing that
// a peer wrote becomes part of the page.
//
//     node page.mjs BROWSER DIRECTORY [PICTURES]
//
// DIRECTORY holds stdio.html, http.html, hostile.html and large.html; PICTURES gets a picture of each.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const [program, directory, pictures] = process.argv.slice(2);
const browser = await Browser.start(program);
let failed = 0;

async function check(name, file, options, test) {
  const url = pathToFileURL(resolve(directory, file)).href;
  let page;
  try {
    page = await browser.open(url, options);
    await test(page);
    // What must hold of every page, after everything that was done to it.
    const asked = page.events("Network.requestWillBeSent").map(event => event.request.url);
    assert.deepEqual(asked.filter(one => !one.startsWith(url) && one !== "about:blank" && !one.startsWith("data:")), [], "a page asks for nothing");
    const said = [...page.events("Runtime.exceptionThrown").map(event => event.exceptionDetails.exception?.description),
      ...page.events("Runtime.consoleAPICalled").map(event => JSON.stringify(event.args)), ...page.events("Log.entryAdded").map(event => event.entry.text)];
    assert.deepEqual(said, [], "a page complains of nothing");
    assert.equal(page.events("Page.javascriptDialogOpening").length, 0);
    console.log("PASS", name);
  } catch (fault) {
    failed++;
    console.log("FAIL", name, fault.message);
  }
  if (page && pictures) {
    mkdirSync(pictures, { recursive: true });
    writeFileSync(join(pictures, name.replaceAll(" ", "-") + ".png"), await page.picture());
  }
}

const rows = "[...document.querySelectorAll('.row')].map(row => row.children[2].textContent)";
const type = (page, text) => page.evaluate(`(() => { const box = document.getElementById("filter"); box.value = ${JSON.stringify(text)}; box.dispatchEvent(new Event("input")); })()`);
const shown = page => page.evaluate("document.getElementById('count').textContent");
const fault = page => page.evaluate("document.getElementById('fault').textContent");
const detail = page => page.evaluate("document.getElementById('detail').textContent");

async function filters(page, text, expected) {
  await type(page, text);
  const settled = `document.getElementById("fault").textContent !== "" || document.getElementById("count").textContent.startsWith(${JSON.stringify(expected)})`;
  await page.until(settled).catch(async () => assert.fail(`${text}: ${await shown(page)} is not ${expected}`));
  assert.equal(await fault(page), "", text);
}

await check("a session over stdio", "stdio.html", {}, async page => {
  assert.equal(await shown(page), "13 rows");
  assert.ok((await page.evaluate(rows)).includes("tools/call read_note"));
  assert.match(await detail(page), /no such note: missing\.md/, "the first error is what one sees first");
  // The picture has the colours of good and bad calls in it.
  const colors = await page.evaluate(`(() => {
    const canvas = document.getElementById("waterfall"), pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] === 255) seen.add([...pixels.slice(at, at + 3)].map(x => x.toString(16).padStart(2, "0")).join(""));
    return [...seen];
  })()`);
  for (const color of ["4fae7f", "e0555b", "d9a13b"]) assert.ok(colors.includes(color), `${color} in ${colors}`);
  assert.match(await page.evaluate("document.getElementById('waterfall').getAttribute('aria-label')"), /9 calls over/);
  assert.ok(await page.evaluate("document.querySelectorAll('.when i').length") >= 13, "each row has its place in time");
});

await check("filters", "stdio.html", { scheme: "dark" }, async page => {
  await filters(page, "status:err", "2 of 13");
  await filters(page, "not status:err", "13 rows");
  await filters(page, "tool:read_*", "2 of 13");
  await filters(page, "tool:read_* status:err", "1 of 13");
  await filters(page, "method:tools/list,initialize", "2 of 13");
  await filters(page, "milk", "2 of 13");
  await filters(page, "\"call Ada\"", "1 of 13");
  await filters(page, "/call\\s+ada/i", "1 of 13");
  await filters(page, "dur>100ms", "3 of 13");
  await filters(page, "dur:4ms", "1 of 13");
  await filters(page, "size>=300", "1 of 13");
  await filters(page, "seq:1..5", "3 of 13");
  await filters(page, "code:-32602 or noise:yes", "2 of 13");
  await filters(page, "kind:notification", "2 of 13");
  await filters(page, "edited:yes", "1 of 13");
  await filters(page, "id:s-4", "1 of 13");
  await filters(page, "< kind:request", "1 of 13");
  await filters(page, "(tool:slow or tool:search) !status:ok", "2 of 13");
  await filters(page, "nothing-has-this", "0 of 13");
  assert.match(await page.evaluate("document.getElementById('list').textContent"), /Nothing fits/);
  await filters(page, "", "13 rows");
  for (const [text, words] of [["tol:x", /did you mean tool/], ["$.params.name = x", /paths/], ["dur>5", /200ms/], ["(a", /not closed/], ["status:bad", /one of ok/], ["/(/", /regular/], ["server:x", /for the commands/]]) {
    await type(page, text);
    await page.until("document.getElementById('fault').textContent !== ''");
    assert.match(await fault(page), words, text);
    assert.equal(await shown(page), "13 rows", "the last good filter stays");
  }
  await filters(page, "login", "2 of 13");
});

await check("keys", "stdio.html", {}, async page => {
  const chosen = () => page.evaluate("document.querySelector('.row[aria-selected=true]')?.textContent || ''");
  await page.key("g");
  assert.match(await chosen(), /initialize/);
  await page.key("j");
  assert.match(await chosen(), /initialized/);
  await page.key("ArrowDown");
  assert.match(await chosen(), /tools\/list/);
  await page.key("G");
  assert.match(await chosen(), /too large|event/);
  await page.key("g");
  await page.key("e");
  assert.match(await chosen(), /read_note/);
  await page.key("e");
  assert.match(await chosen(), /divide/);
  assert.match(await detail(page), /This was changed to/);
  await page.key("/");
  assert.equal(await page.evaluate("document.activeElement.id"), "filter");
  await page.send("Input.insertText", { text: "slow" });
  await page.until("document.getElementById('count').textContent.startsWith('1 of')");
  await page.key("Enter", "\r");
  assert.match(await chosen(), /slow/);
  assert.match(await detail(page), /No answer/);
  await page.key("Escape");
  assert.equal(await shown(page), "13 rows");
  await page.key("Enter", "\r");
  assert.equal(await page.evaluate("document.activeElement.id"), "detail");
  await page.key("?");
  assert.equal(await page.evaluate("document.getElementById('help').hidden"), false);
});

await check("a part of the time", "stdio.html", {}, async page => {
  const box = await page.evaluate("(({ left, right, top }) => ({ left, right, top }))(document.getElementById('waterfall').getBoundingClientRect())");
  await page.drag(box.left + 2, box.left + (box.right - box.left) * 0.2, box.top + 20);
  assert.match(await shown(page), /^[1-4] of 13/);
  assert.equal(await page.evaluate("document.getElementById('range').hidden"), false);
  await page.drag(box.left + 50, box.left + 50, box.top + 20);
  assert.equal(await shown(page), "13 rows");
});

await check("a session over HTTP", "http.html", { scheme: "dark" }, async page => {
  const all = await page.evaluate(rows);
  assert.ok(all.includes("GET /mcp"), "an exchange that no message speaks for has a row");
  await filters(page, "snow", "1 of");
  await filters(page, "405", "1 of");
  await filters(page, "tool:rain status:err", "1 of");
  await page.evaluate("document.querySelector('.row').click()");
  assert.match(await detail(page), /x-api-key/);
  await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)");
  const text = await page.evaluate("document.documentElement.textContent");
  for (const secret of ["p4ssw0rd-in-url", "k3y-in-the-query", "k3y-in-a-header", "t0k3n-in-arguments", "s-9f8e7d6c5b4a"]) assert.ok(!text.includes(secret), secret);
});

await check("hostile text", "hostile.html", {}, async page => {
  assert.notEqual(await page.evaluate("document.title"), "pwned");
  const count = await page.evaluate("document.scripts.length");
  assert.equal(count, 2, "the data and the page's own script");
  assert.equal(await page.evaluate("document.images.length"), 0);
  const total = Number((await shown(page)).replace(/\D/g, ""));
  await page.key("g");
  for (let row = 0; row < total; row++) {
    const words = await page.evaluate("document.body.innerText");
    assert.doesNotMatch(words, /[\u202e\u2066\u200b\u009b\u001b]|\u{e0041}/u, "what cannot be seen is made visible");
    await page.key("j");
  }
  await filters(page, "</script>", "");
  await page.evaluate("document.querySelector('.row')?.click()");
  assert.match(await detail(page), /<\/script>/);
  assert.equal(await page.evaluate("document.scripts.length"), 2);
});

await check("a large session", "large.html", {}, async page => {
  assert.match(await page.evaluate("document.getElementById('note').textContent"), /Left out: [\d,]+ messages/);
  assert.ok(await page.evaluate("document.querySelectorAll('.row').length") < 100, "only what can be seen is in the page");
  await page.key("G");
  await page.until("[...document.querySelectorAll('.row')].some(row => row.getAttribute('aria-selected') === 'true')");
  await filters(page, "seq:19999", "1 of");
  await filters(page, "status:err", "");
});

await check("a narrow window", "http.html", { width: 420, height: 800 }, async page => {
  assert.ok(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing is cut off at the side");
});

await browser.stop();
process.exit(failed ? 1 : 0);
