// Agents of a template with pending updates, grouped by their pinned version.

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { graphql } from "../../api/client";
import {
  DefaultsReview,
  TemplateReview,
  type TemplateReviewQuery,
} from "../../api/graphql.generated";
import { DEFAULTS_ID } from "../../api/pins";

type Template = NonNullable<TemplateReviewQuery["template"]>;
export type Follower = NonNullable<Template["followers"]>["items"][number];

interface Offer {
  latestSha?: string | null;
  latestSource?: string | null;
  updateAvailable: boolean;
}

/** Whether the defaults offer the text; a removed file is offered by no layer. */
const isOfferOfDefaults = ({ latestSha, latestSource, updateAvailable }: Offer) =>
  latestSource === "defaults" || (!latestSha && updateAvailable);

async function loadFollowers(id: string, after: string, signal: AbortSignal) {
  if (id !== DEFAULTS_ID) return graphql(TemplateReview, { id, after }, signal);
  const { agents } = await graphql(DefaultsReview, { after }, signal);
  const items = (agents?.items ?? []).map(({ pins, ...agent }) => ({
    ...agent,
    pins: pins?.filter(isOfferOfDefaults) ?? null,
  }));
  const followers = { items, next: agents?.next ?? null };
  return { template: { id, name: "Defaults", followerCount: null, followers } };
}

/** All agents of a template, or of the defaults. Sends no requests while paused. */
export function useFollowers(templateId: string, isPaused: boolean) {
  const query = useInfiniteQuery({
    queryKey: ["pins", "template", templateId],
    queryFn: ({ pageParam, signal }) => loadFollowers(templateId, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.template?.followers?.next,
    enabled: !isPaused,
  });
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isPaused) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage, isPaused]);
  const followers = useMemo(
    () => query.data?.pages.flatMap((page) => page.template?.followers?.items ?? []) ?? [],
    [query.data],
  );
  return { query, followers, template: query.data?.pages[0]?.template, isLoading: hasNextPage };
}

export interface FollowerGroup {
  pinned: string | null;
  agents: PendingFollower[];
}
export interface PendingFollower {
  id: string;
  name: string;
  slug: string;
  overridden: boolean;
}
export interface PendingFile {
  path: string;
  /** Null for the removal of the file. */
  latest: string | null;
  count: number;
  groups: FollowerGroup[];
}

/** Files with pending updates by path, each with its agents grouped by pinned version. */
export function groupPendingFiles(followers: readonly Follower[]): PendingFile[] {
  const files = new Map<string, PendingFile>();
  for (const { pins, ...agent } of followers) {
    for (const pin of pins ?? []) {
      if (!(pin.updateAvailable || pin.newlyOffered)) continue;
      const newFile = { path: pin.path, latest: pin.latestSha ?? null, count: 0, groups: [] };
      const file = files.get(pin.path) ?? newFile;
      files.set(pin.path, file);
      file.count += 1;
      const pinnedSha = pin.pinnedSha ?? null;
      let group = file.groups.find(({ pinned }) => pinned === pinnedSha);
      if (!group) {
        group = { pinned: pinnedSha, agents: [] };
        file.groups.push(group);
      }
      group.agents.push({ ...agent, overridden: pin.overridden });
    }
  }
  for (const file of files.values()) file.groups.sort((a, b) => b.agents.length - a.agents.length);
  return [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
