// Where files stand: a workspace, an agent's stack, a template, the defaults.

import { ask, pages, routes } from "./api.js";

// "own" is what a confined key has: the plain files of RFC 0059, without their history.
export function place(kind, name = "", title = name) {
  const root = { own: routes.own, defaults: routes.defaults }[kind]?.() ?? routes[kind](name);
  return { kind, name, title, root, id: name ? `${kind}/${name}` : kind, deep: kind !== "own" };
}

async function quietly(work) {
  try {
    return await work;
  } catch (problem) {
    if ([403, 404].includes(problem.status)) return null;
    throw problem;
  }
}

export async function known() {
  const first = place("workspace", "default");
  if (!(await quietly(ask(first.root)))) return [place("own", "", "Workspace")];
  const [agents, templates] = await Promise.all(
    [routes.agents(), routes.templates()].map((path) => quietly(pages(path))));
  return [
    first,
    ...(agents ?? []).map((agent) => place("agent", agent.slug, agent.name)),
    ...(templates ?? []).map((template) => place("template", template.slug, template.name)),
    ...(templates ? [place("defaults", "", "Defaults")] : []),
  ];
}
