// What the palette offers: where one was, agents, files, templates, screens, things to do, and what
// a search finds.

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { matchPath, useLocation } from "react-router";
import { graphql } from "../api/client";
import { addressOf, filesQuery } from "../api/files";
import { AgentsNamed } from "../api/graphql.generated";
import { placeOf, searchQuery } from "../api/search";
import { templateChoices } from "../api/select-options";
import { plain } from "../components/escape-text";
import { folded, hasAll, wordsOf } from "../components/text-match";
import { knownAgents } from "../screens/agents/agent-list";
import { recent } from "./palette-recent";
import { applyTheme, type Theme } from "./theme";

export interface Entry {
  id: string;
  label: string;
  hint?: string | undefined;
  to?: string;
  /** Handed on to the screen. */
  state?: object;
  act?: () => void;
}
export interface Group {
  name: string;
  entries: Entry[];
}

const SCREENS: [string, string][] = [
  ["Inbox", "/inbox"],
  ["Agents", "/agents"],
  ["Templates", "/agent-templates"],
  ["Defaults", "/agent-templates/defaults"],
  ["Runs", "/runs"],
  ["Approvals", "/approvals"],
  ["Workspaces", "/workspaces"],
  ["Sandboxes", "/sandboxes"],
  ["Items", "/items"],
  ["People", "/settings/people"],
  ["Keys", "/settings/keys"],
  ["Policy", "/settings/policy"],
  ["Secrets", "/settings/secrets"],
  ["Webhooks", "/settings/webhooks"],
  ["Audit", "/settings/audit"],
  ["Search", "/search"],
];
const TABS = ["Workspace", "Prompt", "Runs", "Sessions", "Memory", "Items", "Settings"];
const FEW = 6;

const screens: Entry[] = SCREENS.map(([label, to]) => ({ id: `screen ${to}`, label, to }));
const themed = (theme: Theme): Entry => ({
  id: `theme ${theme}`,
  label: `Use the ${theme} theme`,
  act: () => applyTheme(theme),
});
const actions: Entry[] = [
  { id: "new agent", label: "New agent", to: "/agents", state: { creating: true } },
  themed("light"),
  themed("dark"),
  themed("system"),
];

const fitting = (entries: Entry[], words: string[], most = FEW): Entry[] =>
  entries
    .filter(({ label, hint }) => hasAll(folded(`${label} ${hint ?? ""}`), words))
    .sort((a, b) => Number(starts(b, words)) - Number(starts(a, words)))
    .slice(0, most);

const starts = ({ label }: Entry, words: string[]) => folded(label).startsWith(words[0] ?? "");

/** Groups in the order in which they are shown; none of them is empty. */
export function useEntries(text: string): Group[] {
  const words = useMemo(() => wordsOf(text), [text]);
  const agents = useAgentEntries(text, words);
  const here = useHere();
  const { data: templates = [] } = useQuery(templateChoices);
  const hits = useHits(text);
  const followed = templates.map(({ id, name, slug }) => ({
    id: `template ${id}`,
    label: plain(name, 80),
    hint: slug,
    to: addressOf({ kind: "template", id }),
  }));
  const were: Entry[] = recent().map((kept) => ({ ...kept, id: `recent ${kept.to}` }));
  const typed = words.length > 0;
  return [
    { name: "Recent", entries: fitting(were, words) },
    { name: "Agents", entries: typed ? agents : [] },
    { name: "This agent", entries: fitting(here, words, typed ? FEW : TABS.length) },
    { name: "Templates", entries: typed ? fitting(followed, words) : [] },
    { name: "Screens", entries: fitting(screens, words, typed ? FEW : 9) },
    { name: "Actions", entries: fitting(actions, words) },
    { name: "Found in texts", entries: typed ? hits : [] },
  ].filter(({ entries }) => entries.length > 0);
}

/** Agents that are known already, and those that the server knows by how their name begins. */
function useAgentEntries(text: string, words: string[]): Entry[] {
  const startsWith = text.trim();
  const { data } = useQuery({
    queryKey: ["agents", "named", startsWith],
    queryFn: ({ signal }) => graphql(AgentsNamed, { startsWith }, signal),
    enabled: startsWith !== "",
  });
  return useMemo(() => {
    const found = new Map<string, Entry>();
    for (const { id, name, slug } of [...(data?.agents?.items ?? []), ...knownAgents()]) {
      if (found.size >= FEW) break;
      if (!hasAll(folded(`${name} ${slug}`), words)) continue;
      const to = addressOf({ kind: "agent", id });
      found.set(id, { id: `agent ${id}`, label: plain(name, 80), hint: slug, to });
    }
    return [...found.values()];
  }, [data, words]);
}

/** The screens and files of the agent that one is looking at. */
function useHere(): Entry[] {
  const { pathname } = useLocation();
  const id = matchPath("/agents/:id/*", pathname)?.params.id ?? "";
  const { data: files = [] } = useQuery({
    ...filesQuery({ kind: "agent", id }),
    enabled: id !== "",
  });
  if (!id) return [];
  const tabs = TABS.map((name) => {
    const to = `/agents/${id}/${name.toLowerCase()}`;
    return { id: `here ${to}`, label: name, hint: "of this agent", to };
  });
  const own = files.map(({ path }) => {
    const to = addressOf({ kind: "agent", id }, path);
    return { id: `file ${path}`, label: plain(path, 120), hint: "file", to };
  });
  return [...tabs, ...own];
}

function useHits(text: string): Entry[] {
  const { data } = useQuery(searchQuery(text, FEW));
  const asked = text.trim();
  if (asked.length < 2) return [];
  const hits = (data?.items ?? []).map((hit, at) => ({
    id: `hit ${at}`,
    label: plain(hit.title, 80),
    hint: plain(hit.snippet, 120),
    to: placeOf(hit),
  }));
  const all = { id: "search", label: `Search all texts for “${plain(asked, 60)}”` };
  return [...hits, { ...all, to: `/search?q=${encodeURIComponent(asked)}` }];
}
