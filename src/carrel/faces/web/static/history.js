// What became of a file: its versions, and what each changed.

import { ask, routes, send } from "./api.js";
import { bytes, diff, h, show, time, toast } from "./dom.js";

export async function versions(panel, place, path, restored) {
  let page;
  try {
    page = await ask(routes.history(place.root, path));
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    show(panel, h("p", { className: "quiet" }, "Nothing was ever written here; it is inherited from beneath."));
    return;
  }
  const detail = h("div", { className: "detail" });
  const list = h("ol", { className: "versions" });
  const newest = page.items[0].version;

  const choose = async (row, button) => {
    for (const each of list.querySelectorAll("button")) each.classList.toggle("chosen", each === button);
    const before = row.version - 1;
    const text = await ask(`${routes.diff(place.root, path)}?from=${before}&to=${row.version}`).catch(() => null);
    const restore = async () => {
      const answer = await send(routes.restore(place.root, path), { method: "POST", body: { version: row.version } });
      toast(`Version ${row.version} is back, as version ${(await answer.json()).version}`);
      await restored();
    };
    const whole = async () => {
      const file = await ask(`${routes.file(place.root, path)}?version=${row.version}`);
      show(body, h("pre", { className: "text" }, file.content));
    };
    const body = h("div", {}, text === null
      ? h("p", { className: "quiet" }, "The version before it is no longer kept.") : diff(text));
    show(detail, h("div", { className: "row" },
      h("strong", {}, row.deleted ? `Version ${row.version}: deleted` : `What version ${row.version} changed`),
      h("span", { className: "grow" }),
      !row.deleted && h("button", { onclick: whole }, "Whole text"),
      !row.deleted && row.version !== newest && h("button", { onclick: restore }, "Restore")), body);
  };

  const line = (row) => {
    const button = h("button", { onclick: () => choose(row, button) },
      h("b", {}, `v${row.version}`),
      h("span", {}, row.reason || (row.deleted ? "deleted" : "written")),
      h("i", {}, time(row.updatedAt), " · ", h("span", { title: row.author }, short(row.author)), row.runId && " · in a run", row.size !== null && ` · ${bytes(row.size)}`));
    return h("li", {}, button);
  };
  show(list, page.items.map(line));
  show(panel, h("div", { className: "history" }, list, detail));
  list.querySelector("button").click();
}

function short(id) {
  return id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-4)}` : id;
}
