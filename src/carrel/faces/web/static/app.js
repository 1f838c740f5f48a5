// Signing in, the frame around everything, and which page the address asks for.

import { ask, routes, session } from "./api.js";
import { h, show, time, toast } from "./dom.js";
import { Files } from "./files.js";
import { known, place } from "./places.js";
import { Runs } from "./runs.js";
import { Stream } from "./stream.js";

const app = document.getElementById("app");
const MOST = 60;

function fail(problem) {
  if (problem?.name === "AbortError" || problem?.status === 401) return;
  toast(problem?.message ?? String(problem), "bad");
}
addEventListener("unhandledrejection", (event) => { fail(event.reason); event.preventDefault(); });

class Desk {
  constructor(places, tenant) {
    this.files = new Files(places, (...to) => this.go(...to));
    this.runs = new Runs();
    this.places = places;
    this.feed = h("ol", { className: "feed", ariaLive: "polite" });
    this.quiet = h("p", { className: "quiet" }, "What happens from now on is told here.");
    this.live = h("span", { className: "live", title: "Connecting" });
    this.main = h("main", {});
    this.links = Object.fromEntries(["files", "runs"].map((name) => [name, h("a", { href: `#/${name}` }, name[0].toUpperCase() + name.slice(1))]));
    show(app, h("header", { className: "bar" },
      h("a", { className: "brand", href: "#/files" }, "Carrel"), h("nav", {}, Object.values(this.links)),
      h("span", { className: "grow" }), tenant && h("span", { className: "quiet" }, tenant.name),
      h("a", { href: "/docs" }, "API"), h("button", { className: "plain", onclick: signOut }, "Sign out")),
    h("div", { className: "body" }, this.main,
      h("aside", { className: "told" }, h("h3", {}, this.live, "As it happens"), this.quiet, this.feed)));
    this.stream = new Stream(places[0].kind === "own" ? routes.ownEvents() : routes.events(), {
      event: (event) => this.heard(event),
      state: (up) => { this.live.classList.toggle("up", up); this.live.title = up ? "Live" : "Not connected; trying again"; },
    });
    this.visit = this.visit.bind(this);
    addEventListener("hashchange", this.visit);
    this.visit();
  }

  close() {
    this.stream.close();
    removeEventListener("hashchange", this.visit);
  }

  go(page, id, path) {
    const address = `#/${page}${id ? `/${id}` : ""}${path ? `/-/${encodeURIComponent(path)}` : ""}`;
    if (location.hash === address) this.visit();
    else location.hash = address;
  }

  async visit() {
    if (location.hash === this.here) return;
    const before = this.here;
    if (before !== undefined && !(await this.files.leave(() => {}))) {
      history.replaceState(null, "", before);
      return;
    }
    this.here = location.hash;
    const [where, tail] = location.hash.replace(/^#\//, "").split("/-/");
    const [page, ...id] = where.split("/");
    const path = tail === undefined ? null : decodeURIComponent(tail);
    const name = page === "runs" ? "runs" : "files";
    for (const [each, link] of Object.entries(this.links)) link.classList.toggle("on", each === name);
    show(this.main, this[name].root);
    try {
      if (name === "runs") await this.runs.visit(id[0] ?? null, path);
      else await this.files.visit(this.placed(id), path);
    } catch (problem) {
      fail(problem);
    }
  }

  placed([kind, name]) {
    const asked = name ? `${kind}/${name}` : kind;
    return this.places.find((each) => each.id === asked) ?? (kind === "workspace" && name ? place(kind, name) : this.places[0]);
  }

  heard(event) {
    const { path, version, runId } = event.payload;
    const text = event.type === "workspace.updated" ? [h("strong", {}, path), ` v${version}`] : [h("strong", {}, event.type.replace(".", " "))];
    const where = event.workspace && event.workspace.name !== "default" ? `${event.workspace.kind} ${event.workspace.name} · ` : "";
    const link = path
      ? event.workspace?.kind === "workspace" ? `#/files/workspace/${event.workspace.name}/-/${encodeURIComponent(path)}` : null
      : `#/runs/${runId ?? event.runId}`;
    this.quiet.hidden = true;
    this.feed.prepend(h("li", {}, h("a", { href: link ?? "#/files" }, text), h("i", {}, where, time(event.timestamp))));
    while (this.feed.children.length > MOST) this.feed.lastChild.remove();
    const page = this.links.runs.classList.contains("on") ? this.runs : this.files;
    page.heard(event).catch(fail);
  }
}

let desk = null;

function signOut() {
  session.token = null;
  desk?.close();
  desk = null;
  welcome();
}
addEventListener("signed-out", () => {
  signOut();
  toast("Please sign in again: the token is no longer known.", "bad");
});
addEventListener("beforeunload", (event) => {
  if (desk?.files.editor?.dirty) event.preventDefault();
});

function welcome(message = "") {
  const field = h("input", { type: "password", name: "token", autocomplete: "off", required: true, placeholder: "carrel_…", ariaLabel: "Token" });
  const enter = async (event) => {
    event.preventDefault();
    session.token = field.value.trim();
    try {
      await open();
    } catch (problem) {
      session.token = null;
      welcome(problem.status === 401 ? "This token is not known here." : problem.message);
    }
  };
  show(app, h("form", { className: "door", onsubmit: enter },
    h("h1", {}, "Carrel"), h("p", {}, "A private desk for every agent."),
    message && h("p", { className: "notice bad", role: "alert" }, message),
    h("label", {}, "Your token", field), h("button", { className: "main" }, "Sign in"),
    h("p", { className: "quiet" }, "The server printed a link to sign in with, and on its first start the owner's token. The token stays in this tab.")));
  field.focus();
}

async function open() {
  const [places, tenant] = await Promise.all([known(), ask(routes.tenant()).catch((problem) => {
    if (problem.status === 403) return null;
    throw problem;
  })]);
  desk?.close();
  desk = new Desk(places, tenant);
}

async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    try {
      session.token = null;
      session.token = (await ask(routes.signIn(), { method: "POST", body: { code } })).token;
    } catch (problem) {
      welcome(problem.status === 401 ? "This link was used already, or has run out. A token does as well." : problem.message);
      return;
    }
  }
  if (!session.token) return welcome();
  try {
    await open();
  } catch (problem) {
    if (problem.status !== 401) welcome(problem.message);
  }
}

start();
