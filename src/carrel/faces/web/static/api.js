// The public API, and nothing else: every address that this page knows stands here.

const KEY = "carrel-token";
const enc = encodeURIComponent;

export const routes = {
  signIn: () => "/v1/sign-in",
  tenant: () => "/v1/tenants/me",
  agents: () => "/v1/agents",
  templates: () => "/v1/templates",
  own: () => "/v1/host/workspace/files",
  workspace: (name) => `/v1/workspaces/${enc(name)}/files`,
  agent: (id) => `/v1/agents/${enc(id)}/files`,
  template: (id) => `/v1/templates/${enc(id)}/files`,
  defaults: () => "/v1/defaults/files",
  ownEvents: () => "/v1/host/workspace/events",
  events: () => "/v1/events",
  runs: () => "/v1/runs",
  run: (id) => `/v1/runs/${enc(id)}`,
  runFile: (id, path) => `/v1/runs/${enc(id)}/files/${enc(path)}`,
  runDiff: (id) => `/v1/runs/${enc(id)}/diff`,
  file: (root, path) => `${root}/${enc(path)}`,
  history: (root, path) => `${root}/${enc(path)}/history`,
  diff: (root, path) => `${root}/${enc(path)}/diff`,
  restore: (root, path) => `${root}/${enc(path)}/restore`,
};

export const session = {
  get token() { return sessionStorage.getItem(KEY); },
  set token(value) { value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY); },
};

export class Problem extends Error {
  constructor(status, body) {
    super(body?.message ?? `the server answered ${status}`);
    this.status = status;
    this.code = body?.error ?? "";
    this.details = body?.details ?? {};
  }
}

export async function send(path, { method = "GET", body, headers = {}, signal } = {}) {
  const told = { ...headers };
  if (session.token) told.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) told["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method, headers: told, signal, cache: "no-store", credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { message: "The server cannot be reached." });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => null));
  if (answer.status === 401 && session.token) dispatchEvent(new Event("signed-out"));
  throw problem;
}

export async function ask(path, options) {
  const answer = await send(path, options);
  const kind = answer.headers.get("content-type") ?? "";
  return kind.includes("json") ? answer.json() : answer.text();
}

export async function pages(path, most = 500) {
  const items = [];
  let cursor = "";
  do {
    const page = await ask(`${path}?limit=100${cursor && `&cursor=${enc(cursor)}`}`);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor && items.length < most);
  return items;
}
