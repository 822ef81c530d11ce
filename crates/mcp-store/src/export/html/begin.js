// Begin.

{
  const s = data.session;
  $("name").textContent = visible(s.name || s.server || "MCP session").slice(0, 200);
  const errors = rows.filter(row => row.tone === "bad").length;
  const facts = [["server", s.server && s.name ? s.server : undefined], ["over", s.transport], ["client", s.client], ["revision", s.revision],
    ["started", s.started_at.replace("T", " ").replace(/(\..*)?Z$/, "") + " UTC"], ["lasted", data.lasted_us !== undefined ? duration(data.lasted_us) : undefined],
    ["messages", messages.length.toLocaleString("en")], ["errors", errors.toLocaleString("en"), errors > 0], ["session", s.id.slice(0, 8)], ...Object.entries(s.notes || {})];
  for (const [name, value, isBad] of facts) {
    if (value === undefined || value === null || value === "") continue;
    const text = visible(value);
    $("facts").append(element("div", {}, element("dt", { text: visible(name) }), element("dd", { text, title: text, class: isBad ? "bad" : undefined })));
  }
  $("note").append(...data.notes.flatMap((note, index) => [index ? " " : "", note.strong ? element("strong", { text: visible(note.text) }) : visible(note.text)]));
  for (let tick = 0; tick <= 5; tick++) $("axis").append(element("li", { text: duration(Math.round(span[1] * tick / 5)) }));
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  let waiting = 0;
  $("filter").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(applyFilter, messages.length > 2000 ? 120 : 0); });
  $("theme").addEventListener("click", toggleTheme);
  $("help-button").addEventListener("click", toggleHelp);
  list.addEventListener("scroll", () => drawRows());
  new ResizeObserver(() => { drawRows(); drawWaterfall(); }).observe(document.querySelector("main"));
  const wanted = Number(location.hash.slice(1));
  refresh();
  choose((wanted && rows.find(row => row.messages.some(message => message.seq === wanted))) || shown.find(row => row.tone === "bad") || shown[0] || null, true);
  list.focus({ preventScroll: true });
}
