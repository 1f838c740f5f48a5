// The files of a place: a list, and one of them to read, edit or look back on.

import { ask, routes, send } from "./api.js";
import { bytes, confirmed, h, show, time, toast } from "./dom.js";
import { Editor } from "./editor.js";
import { versions } from "./history.js";

const MOST = 400;

export class Files {
  constructor(places, go) {
    this.places = places;
    this.go = go;
    this.rows = [];
    this.place = places[0];
    this.path = null;
    this.file = null;
    this.editor = null;
    this.list = h("nav", { className: "list", ariaLabel: "Files" });
    this.find = h("input", { type: "search", placeholder: "Find a file", ariaLabel: "Find a file", oninput: () => this.draw() });
    this.sheet = h("section", { className: "sheet" });
    this.root = h("div", { className: "files" },
      h("aside", { className: "side" }, this.chooser(), h("div", { className: "row" }, this.find,
        h("button", { title: "A new file", onclick: () => this.begin() }, "New")), this.list),
      this.sheet);
  }

  chooser() {
    const option = (each) => h("option", { value: each.id }, each.title);
    const group = (label, kind) => {
      const some = this.places.filter((each) => each.kind === kind);
      return some.length > 0 && h("optgroup", { label }, some.map(option));
    };
    this.choice = h("select", { ariaLabel: "Whose files", onchange: () => this.go("files", this.choice.value) },
      group("Workspace", "workspace"), group("Workspace", "own"), group("Agents", "agent"),
      group("Templates", "template"), group("Beneath all agents", "defaults"));
    return this.choice;
  }

  // Called whenever the address changes.
  async visit(place, path) {
    const moved = place.id !== this.place.id || this.rows.length === 0;
    this.place = place;
    this.choice.value = place.id;
    this.path = path;
    this.editor = null;
    if (moved) await this.load();
    this.draw();
    if (path === null) this.welcome();
    else await this.read();
  }

  async load() {
    this.rows = (await ask(this.place.root)).files;
  }

  draw() {
    const wanted = this.find.value.toLowerCase();
    const found = this.rows.filter((row) => row.path.toLowerCase().includes(wanted));
    const link = (row) => {
      const cut = row.path.lastIndexOf("/") + 1;
      return h("a", {
        href: this.address(row.path), className: row.path === this.path ? "chosen" : "",
        ariaCurrent: row.path === this.path ? "page" : "false",
      }, h("span", {}, cut > 0 && h("i", {}, row.path.slice(0, cut)), row.path.slice(cut)),
      h("b", {}, `v${row.version}`));
    };
    show(this.list, found.slice(0, MOST).map(link),
      found.length > MOST && h("p", { className: "quiet" }, `${found.length - MOST} more: type to find them.`),
      found.length === 0 && h("p", { className: "quiet" }, this.rows.length ? "None is called so." : "There are no files here yet."));
  }

  address(path) {
    return `#/files/${this.place.id}${path === null ? "" : `/-/${encodeURIComponent(path)}`}`;
  }

  welcome() {
    const total = this.rows.length;
    show(this.sheet, h("div", { className: "empty" },
      h("h2", {}, this.place.title),
      h("p", {}, total ? `${total} ${total === 1 ? "file" : "files"}. Choose one to read it.` : "Nothing is here yet."),
      h("button", { className: "main", onclick: () => this.begin() }, "Write a file")));
  }

  async read() {
    const { root } = this.place;
    try {
      this.file = await ask(routes.file(root, this.path));
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      this.gone();
      return;
    }
    show(this.sheet, this.head(), h("pre", { className: "text" }, this.file.content || h("span", { className: "quiet" }, "This file is empty.")));
  }

  gone() {
    this.file = null;
    show(this.sheet, h("div", { className: "empty" },
      h("h2", {}, this.path), h("p", {}, "There is no such file now."),
      h("div", { className: "buttons" },
        this.place.deep && h("button", { onclick: () => this.look() }, "See its history"),
        h("button", { className: "main", onclick: () => this.edit("") }, "Write it"))));
  }

  head(mode = "read") {
    const file = this.file;
    const tab = (name, text, act) => h("button", { className: mode === name ? "tab on" : "tab", onclick: act }, text);
    return h("header", { className: "title" },
      h("div", {}, h("h2", {}, this.path),
        file && h("p", { className: "quiet" }, `version ${file.version} · `, time(file.updatedAt),
          ` · ${bytes(new Blob([file.content]).size)} · ${file.contentType}`,
          file.source && file.source !== this.place.kind && ` · from the ${file.source}`)),
      h("div", { className: "tabs" },
        tab("read", "Read", () => this.leave(() => this.read())),
        tab("edit", "Edit", () => this.leave(() => this.edit(file.content))),
        this.place.deep && tab("history", "History", () => this.leave(() => this.look())),
        h("button", { className: "tab danger", onclick: () => this.remove() }, "Delete")));
  }

  // What may be lost is asked for first.
  async leave(act) {
    if (this.editor?.dirty && !(await confirmed("Your changes are not saved.", "Drop them"))) return false;
    this.editor = null;
    await act();
    return true;
  }

  edit(text) {
    this.editor = new Editor({
      place: this.place, path: this.path, file: this.file, text,
      saved: async (file) => {
        this.file = file;
        this.editor = null;
        toast(`Saved as version ${file.version}`);
        await this.load();
        this.draw();
        await this.read();
      },
    });
    show(this.sheet, this.file ? this.head("edit") : h("header", { className: "title" }, h("h2", {}, this.path)), this.editor.root);
    this.editor.focus();
  }

  async look() {
    const panel = h("div", {});
    show(this.sheet, this.file ? this.head("history") : h("header", { className: "title" }, h("h2", {}, this.path)), panel);
    await versions(panel, this.place, this.path, async () => { await this.load(); this.draw(); await this.read(); });
  }

  begin() {
    this.leave(() => {
      const name = h("input", { placeholder: "notes/today.md", required: true, ariaLabel: "Path of the new file" });
      const start = (event) => {
        event.preventDefault();
        this.go("files", this.place.id, name.value.trim());
      };
      show(this.sheet, h("form", { className: "empty", onsubmit: start },
        h("h2", {}, "A new file"), h("p", {}, "Where should it stand?"), name,
        h("button", { className: "main" }, "Go on")));
      name.focus();
    });
  }

  async remove() {
    const beneath = this.place.kind === "agent" ? " What lies beneath will be seen again." : " Its history stays.";
    if (!this.file || !(await confirmed(`Delete ${this.path}?${beneath}`, "Delete"))) return;
    await send(routes.file(this.place.root, this.path), { method: "DELETE", headers: { "If-Match": this.file.etag } });
    toast(`${this.path} is deleted`);
    this.editor = null;
    await this.load();
    this.draw();
    this.go("files", this.place.id);
  }

  // Something was written, perhaps here.
  async heard(event) {
    if (event.type !== "workspace.updated" || !this.concerns(event.workspace)) return;
    const { path, version } = event.payload;
    await this.load();
    this.draw();
    if (path !== this.path || version === this.file?.version) return;
    if (this.editor) this.editor.overtaken(version);
    else if (this.file) await this.read();
  }

  concerns(scope) {
    if (!scope || this.place.kind === "own") return true;
    if (this.place.kind === "workspace") return scope.kind === "workspace" && scope.name === this.place.name;
    return scope.kind !== "workspace";
  }
}
