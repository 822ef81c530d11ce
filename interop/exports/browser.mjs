// A headless Chromium, driven over its own debugging pipe: no package is needed for that.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Longer than anything takes on a busy machine. */
const PATIENCE = 60_000;

export class Browser {
  static async start(program) {
    const profile = mkdtempSync(join(tmpdir(), "mcp-proxy-browser-"));
    const flags = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--no-default-browser-check", "--disable-dev-shm-usage", `--user-data-dir=${profile}`, "--remote-debugging-pipe"];
    // Chromium will not run as root inside its sandbox. What is opened here is our own.
    if (process.getuid?.() === 0) flags.push("--no-sandbox");
    const child = spawn(program, [...flags, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    return new Browser(child, profile);
  }

  constructor(child, profile) {
    Object.assign(this, { child, profile, next: 1, waiting: new Map(), heard: [] });
    let rest = "";
    child.stdio[4].setEncoding("utf8");
    child.stdio[4].on("data", text => {
      const parts = (rest + text).split("\0");
      rest = parts.pop();
      for (const part of parts) this.hear(JSON.parse(part));
    });
    child.on("exit", () => { for (const { reject } of this.waiting.values()) reject(new Error("the browser ended")); });
  }

  hear(message) {
    const waiting = this.waiting.get(message.id);
    if (!waiting) { this.heard.push(message); return; }
    this.waiting.delete(message.id);
    if (message.error) waiting.reject(new Error(message.error.message));
    else waiting.resolve(message.result);
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${method} took too long`)), PATIENCE);
      const done = act => value => { clearTimeout(timer); act(value); };
      this.waiting.set(id, { resolve: done(resolve), reject: done(reject) });
      this.child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    });
  }

  /** A page with everything that it asks for and complains about on record. */
  async open(url, { width = 1400, height = 900, scheme = "light" } = {}) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await page.send("Page.navigate", { url });
    await page.until("document.readyState === 'complete'");
    return page;
  }

  async stop() {
    const ended = new Promise(resolve => this.child.on("exit", resolve));
    await this.send("Browser.close").catch(() => this.child.kill("SIGKILL"));
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

export class Page {
  constructor(browser, session) { Object.assign(this, { browser, session }); }

  send(method, params) { return this.browser.send(method, params, this.session); }

  /** What the page itself said or asked for, so far. */
  events(method) { return this.browser.heard.filter(event => event.sessionId === this.session && event.method === method).map(event => event.params); }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description || exceptionDetails.text}`);
    return result.value;
  }

  /** Waits for something that comes to hold by itself. */
  async until(expression) {
    const begun = Date.now();
    while (!await this.evaluate(expression)) if (Date.now() - begun > PATIENCE) throw new Error(`never: ${expression}`);
  }

  async key(key, text = key.length === 1 ? key : undefined) {
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", key, text });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key });
  }

  async drag(from, to, y) {
    const mouse = (type, x, buttons) => this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons, clickCount: 1 });
    await mouse("mousePressed", from, 1);
    await mouse("mouseMoved", (from + to) / 2, 1);
    await mouse("mouseMoved", to, 1);
    await mouse("mouseReleased", to, 0);
  }

  async picture() { return Buffer.from((await this.send("Page.captureScreenshot", { format: "png" })).data, "base64"); }
}
