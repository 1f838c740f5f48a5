// Making elements without HTML in strings, so that no content can ever become markup.

export function h(tag, props = {}, ...inner) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...inner.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return node;
}

export function show(place, ...inner) {
  place.replaceChildren(...inner.flat(Infinity).filter(Boolean));
}

const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

function ago(text) {
  const seconds = (new Date(text) - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return unit === "second" && seconds > -10 ? "just now" : RELATIVE.format(Math.round(seconds / size), unit);
}

export function time(text) {
  return h("time", { dateTime: text, title: new Date(text).toLocaleString() }, ago(text));
}

setInterval(() => {
  for (const node of document.querySelectorAll("time")) node.textContent = ago(node.dateTime);
}, 30000);

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  return count < 1048576 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1048576).toFixed(1)} MiB`;
}

export function diff(text) {
  if (!text) return h("p", { className: "quiet" }, "No difference.");
  const kinds = { "+": "added", "-": "removed", "@": "place", "\\": "quiet" };
  const lines = text.replace(/\n$/, "").split("\n").filter((line) => !/^(---|\+\+\+) /.test(line));
  return h("pre", { className: "diff" }, lines.map((line) =>
    h("span", { className: kinds[line[0]] ?? "" }, line + "\n")));
}

// A word in the corner, gone by itself.
export function toast(text, kind = "") {
  for (const before of document.querySelectorAll(".toast")) before.remove();
  const note = h("div", { className: `toast ${kind}`, role: "status" }, text);
  document.body.append(note);
  setTimeout(() => note.classList.add("leaving"), 3200);
  setTimeout(() => note.remove(), 3700);
}

// Asks before something that hurts; resolves to whether to go on.
export function confirmed(question, yes) {
  return new Promise((resolve) => {
    const box = h("dialog", { onclose: () => { box.remove(); resolve(box.returnValue === "yes"); } },
      h("p", {}, question),
      h("div", { className: "buttons" },
        h("button", { onclick: () => box.close("no") }, "Cancel"),
        h("button", { className: "danger", onclick: () => box.close("yes") }, yes)));
    document.body.append(box);
    box.showModal();
  });
}
