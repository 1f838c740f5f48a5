// Entries of the command palette: recent entries, agents, files, templates, screens, actions and
// search results.

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { matchPath, useLocation } from "react-router";
import { agentQuery } from "../api/agents";
import { graphql } from "../api/client";
import { filesQuery, fileUrl } from "../api/files";
import { FindAgents } from "../api/graphql.generated";
import { hitUrl, searchQuery } from "../api/search";
import { templateOptionsQuery } from "../api/select-options";
import { escapeText } from "../components/escape-text";
import { foldText, includesAllWords, splitWords } from "../components/text-match";
import { cachedAgents } from "../screens/agents/agent-list";
import { loadRecent } from "./palette-recent";
import { applyTheme, type Theme } from "./theme";

export interface PaletteEntry {
  id: string;
  label: string;
  hint?: string | undefined;
  to?: string;
  /** Navigation state for the screen. */
  state?: object;
  run?: () => void;
}
export interface PaletteGroup {
  name: string;
  entries: PaletteEntry[];
}

const SCREENS: [string, string][] = [
  ["Overview", "/overview"],
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
  ["API keys", "/settings/keys"],
  ["Policy", "/settings/policy"],
  ["Secrets", "/settings/secrets"],
  ["Webhooks", "/settings/webhooks"],
  ["Audit log", "/settings/audit"],
  ["Search", "/search"],
];
const TABS = ["Workspace", "Prompt", "Runs", "Sessions", "Memory", "Items", "Settings"];
const MAX_PER_GROUP = 6;

const screens: PaletteEntry[] = SCREENS.map(([label, to]) => ({ id: `screen ${to}`, label, to }));
const themeEntry = (theme: Theme): PaletteEntry => ({
  id: `theme ${theme}`,
  label: `Use ${theme} theme`,
  run: () => applyTheme(theme),
});
const actions: PaletteEntry[] = [
  { id: "new agent", label: "New agent", to: "/agents", state: { creating: true } },
  { id: "compare", label: "Compare", to: "/compare" },
  themeEntry("light"),
  themeEntry("dark"),
  themeEntry("system"),
];

const filterEntries = (
  entries: PaletteEntry[],
  words: string[],
  limit = MAX_PER_GROUP,
): PaletteEntry[] =>
  entries
    .filter(({ label, hint }) => includesAllWords(foldText(`${label} ${hint ?? ""}`), words))
    .sort((a, b) => Number(startsWithWord(b, words)) - Number(startsWithWord(a, words)))
    .slice(0, limit);

const startsWithWord = ({ label }: PaletteEntry, words: string[]) =>
  foldText(label).startsWith(words[0] ?? "");

/** Non-empty groups, in display order. */
export function usePaletteEntries(text: string): PaletteGroup[] {
  const words = useMemo(() => splitWords(text), [text]);
  const agents = useAgentEntries(text, words);
  const agentEntries = useCurrentAgentEntries();
  const { data: templates = [] } = useQuery(templateOptionsQuery);
  const hits = useSearchEntries(text);
  const templateEntries = templates.map(({ id, name, slug }) => ({
    id: `template ${id}`,
    label: escapeText(name, 80),
    hint: slug,
    to: fileUrl({ kind: "template", id }),
  }));
  const recentEntries: PaletteEntry[] = loadRecent().map((entry) => ({
    ...entry,
    id: `recent ${entry.to}`,
  }));
  const hasQuery = words.length > 0;
  return [
    { name: "Recent", entries: filterEntries(recentEntries, words) },
    { name: "Agents", entries: hasQuery ? agents : [] },
    {
      name: "This agent",
      entries: filterEntries(agentEntries, words, hasQuery ? MAX_PER_GROUP : TABS.length),
    },
    { name: "Templates", entries: hasQuery ? filterEntries(templateEntries, words) : [] },
    { name: "Screens", entries: filterEntries(screens, words, hasQuery ? MAX_PER_GROUP : 9) },
    { name: "Actions", entries: filterEntries(actions, words) },
    { name: "Search results", entries: hasQuery ? hits : [] },
  ].filter(({ entries }) => entries.length > 0);
}

/** Cached agents, and agents whose name starts with the query. */
function useAgentEntries(text: string, words: string[]): PaletteEntry[] {
  const startsWith = text.trim();
  const { data } = useQuery({
    queryKey: ["agents", "named", startsWith],
    queryFn: ({ signal }) => graphql(FindAgents, { startsWith }, signal),
    enabled: startsWith !== "",
  });
  return useMemo(() => {
    const entries = new Map<string, PaletteEntry>();
    for (const { id, name, slug } of [...(data?.agents?.items ?? []), ...cachedAgents()]) {
      if (entries.size >= MAX_PER_GROUP) break;
      if (!includesAllWords(foldText(`${name} ${slug}`), words)) continue;
      const to = fileUrl({ kind: "agent", id });
      entries.set(id, { id: `agent ${id}`, label: escapeText(name, 80), hint: slug, to });
    }
    return [...entries.values()];
  }, [data, words]);
}

/** Tabs and files of the current agent. */
function useCurrentAgentEntries(): PaletteEntry[] {
  const { pathname } = useLocation();
  const id = matchPath("/agents/:id/*", pathname)?.params.id ?? "";
  const { data: files = [] } = useQuery({
    ...filesQuery({ kind: "agent", id }),
    enabled: id !== "",
  });
  const { data: agent } = useQuery({ ...agentQuery(id), enabled: id !== "" });
  if (!id) return [];
  const name = agent ? escapeText(agent.name, 80) : "this agent";
  const tabs = TABS.map((tab) => {
    const to = `/agents/${id}/${tab.toLowerCase()}`;
    return { id: `here ${to}`, label: tab, hint: name, to };
  });
  const fileEntries = files.map(({ path }) => {
    const to = fileUrl({ kind: "agent", id }, path);
    return { id: `file ${path}`, label: escapeText(path, 120), hint: name, to };
  });
  return [...tabs, ...fileEntries];
}

function useSearchEntries(text: string): PaletteEntry[] {
  const { data } = useQuery(searchQuery(text, MAX_PER_GROUP));
  const query = text.trim();
  if (query.length < 2) return [];
  const hits = (data?.items ?? []).map((hit, index) => ({
    id: `hit ${index}`,
    label: escapeText(hit.title, 80),
    hint: escapeText(`${hit.scopeName ?? hit.scope}: ${hit.snippet}`, 120),
    to: hitUrl(hit),
  }));
  const allResults = { id: "search", label: `Search for “${escapeText(query, 60)}”` };
  return [...hits, { ...allResults, to: `/search?q=${encodeURIComponent(query)}` }];
}
