// Runs, each with the files that were frozen for it.

import { ask, pages, routes } from "./api.js";
import { diff, h, show, time } from "./dom.js";

export class Runs {
  constructor() {
    this.id = null;
    this.list = h("nav", { className: "list", ariaLabel: "Runs" });
    this.sheet = h("section", { className: "sheet" });
    this.root = h("div", { className: "files" }, h("aside", { className: "side" }, this.list), this.sheet);
  }

  async visit(id, path) {
    this.id = id;
    await this.load();
    if (id === null) this.welcome();
    else await this.read(id, path);
  }

  async load() {
    this.items = await pages(routes.runs(), 200);
    show(this.list, this.items.map((run) => h("a", {
      href: `#/runs/${run.runId}`, className: run.runId === this.id ? "run chosen" : "run",
    }, h("span", {}, run.workflowId || run.agentId || "run", h("i", {}, " ", time(run.startedAt))), chip(run.status))),
    this.items.length === 0 && h("p", { className: "quiet" }, "No run was started yet."));
  }

  welcome() {
    show(this.sheet, h("div", { className: "empty" }, h("h2", {}, "Runs"),
      h("p", {}, "A run reads the workspace as it was when it began, to the byte, whatever is written since."),
      h("pre", { className: "text small" }, `curl -X POST ${location.origin}${routes.runs()} \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -d '{"workflowId": "nightly"}'`)));
  }

  async read(id, path) {
    let run;
    try {
      run = await ask(routes.run(id));
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      show(this.sheet, h("div", { className: "empty" }, h("h2", {}, "There is no such run.")));
      return;
    }
    const changed = run.kept ? await ask(routes.runDiff(id)).catch(() => null) : null;
    const detail = h("div", { className: "detail" });
    const kinds = new Map((changed?.changes ?? []).map((each) => [each.path, each.change]));
    const rows = (run.workspace ?? []).map((row) => h("li", {}, h("a", {
      href: `#/runs/${id}/-/${encodeURIComponent(row.path)}`, className: row.path === path ? "chosen" : "",
    }, h("span", {}, row.path), kinds.has(row.path) && h("em", {}, kinds.get(row.path) === "removed" ? "removed since" : "changed since"), h("b", {}, `v${row.version}`))));
    show(this.sheet,
      h("header", { className: "title" }, h("div", {}, h("h2", {}, run.workflowId || "Run"),
        h("p", { className: "quiet" }, `${run.runId} · started `, time(run.startedAt),
          run.endedAt && " · ended ", run.endedAt && time(run.endedAt), ` · ${run.scope}`)), chip(run.status)),
      run.kept ? h("p", { className: "quiet" }, `It sees ${rows.length} ${rows.length === 1 ? "file" : "files"}`,
        kinds.size > 0 ? `; since then ${kinds.size} ${kinds.size === 1 ? "has" : "have"} changed.` : "; nothing has changed since.")
        : h("p", { className: "notice" }, "Its files were let go."),
      h("div", { className: "history" }, h("ul", { className: "versions frozen" }, rows), detail));
    if (path !== null) await this.open(id, path, detail, kinds.has(path));
  }

  async open(id, path, detail, moved) {
    const file = await ask(routes.runFile(id, path));
    const since = moved ? await ask(`${routes.runDiff(id)}?path=${encodeURIComponent(path)}`).catch(() => null) : null;
    show(detail, h("strong", {}, `${path}, as the run sees it`), h("pre", { className: "text" }, file.content || " "),
      since?.changes[0]?.diff && [h("strong", {}, "What has changed since"), diff(since.changes[0].diff)]);
  }

  async heard(event) {
    if (!event.type.startsWith("run.")) return;
    await this.load();
    if (event.runId === this.id) await this.visit(this.id, null);
  }
}

function chip(status) {
  return h("b", { className: `chip ${status}` }, status);
}
