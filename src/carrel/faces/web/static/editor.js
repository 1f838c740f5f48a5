// Writing a file, on the condition that nobody else has meanwhile.

import { ask, routes } from "./api.js";
import { diff, h, show } from "./dom.js";

export class Editor {
  constructor({ place, path, file, text, saved }) {
    Object.assign(this, { place, path, file, saved });
    this.first = text;
    this.note = h("div", {});
    this.area = h("textarea", {
      value: text, spellcheck: false, ariaLabel: `Content of ${path}`, placeholder: "Write here.",
      oninput: () => this.draw(),
      onkeydown: (event) => {
        if ((event.ctrlKey || event.metaKey) && event.key === "s") {
          event.preventDefault();
          this.save();
        }
      },
    });
    this.why = h("input", { placeholder: "Why? (for the history, if you like)", maxLength: 200, ariaLabel: "Reason" });
    this.button = h("button", { className: "main", title: "Ctrl+S", onclick: () => this.save() }, "Save");
    this.root = h("div", { className: "editor" }, this.note, this.area, h("div", { className: "row" }, this.why, this.button));
    this.draw();
  }

  get dirty() {
    return this.area.value !== this.first;
  }

  focus() {
    this.area.focus();
    this.area.setSelectionRange(0, 0);
  }

  draw() {
    this.button.disabled = Boolean(this.file) && !this.dirty;
    this.button.textContent = this.file ? "Save" : "Create";
  }

  async save() {
    if (this.button.disabled) return;
    this.button.disabled = true;
    const condition = this.file ? { "If-Match": this.file.etag } : { "If-None-Match": "*" };
    const reason = this.why.value.trim();
    if (reason) condition["Carrel-Reason"] = latin(reason);
    try {
      const body = { content: this.area.value };
      if (this.file) body.contentType = this.file.contentType;
      const file = await ask(routes.file(this.place.root, this.path), { method: "PUT", body, headers: condition });
      this.first = this.area.value;
      await this.saved(file);
    } catch (problem) {
      this.draw();
      if (problem.code === "workspace_conflict") await this.meet(problem.details.currentVersion);
      else show(this.note, h("div", { className: "notice bad" }, problem.message));
    }
  }

  // Others were faster. Nothing is lost: both texts are here, and the writer decides.
  async meet(version) {
    const { root } = this.place;
    const theirs = await ask(routes.file(root, this.path)).catch(() => null);
    if (!theirs) {
      this.file = null;
      this.draw();
      show(this.note, h("div", { className: "notice" },
        h("strong", {}, "Meanwhile this file was deleted."), h("p", {}, "Your text is still here. “Create” writes it anew.")));
      return;
    }
    const known = this.file && this.place.deep
      ? await ask(`${routes.diff(root, this.path)}?from=${this.file.version}&to=${version}`).catch(() => null) : null;
    show(this.note, h("div", { className: "notice" },
      h("strong", {}, `Meanwhile somebody saved version ${theirs.version}.`),
      h("p", {}, "Nothing was overwritten, and your text is still in the field below. ",
        known ? "This is what they changed:" : "This is what is there now:"),
      known ? diff(known) : h("pre", { className: "text small" }, theirs.content),
      h("div", { className: "buttons" },
        h("button", { onclick: () => this.take(theirs) }, "Use theirs, drop mine"),
        h("button", { className: "main", onclick: () => this.insist(theirs) }, "Save mine over it"))));
    this.note.scrollIntoView({ block: "nearest" });
  }

  take(theirs) {
    this.saved(theirs);
  }

  insist(theirs) {
    this.file = theirs;
    this.button.disabled = false;
    show(this.note);
    this.save();
  }

  overtaken(version) {
    if (this.note.firstChild) return;
    show(this.note, h("div", { className: "notice" }, `Somebody has just saved version ${version}. Go on writing: saving will show you what they changed.`));
  }
}

// A header holds bytes; the server reads these as UTF-8.
function latin(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}
