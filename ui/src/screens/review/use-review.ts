// A review as it goes on: what is shown stays until the reader asks for the newer one, and only what
// is shown can be accepted.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { historyQuery } from "../../api/files";
import { acceptPin, type Pin, pinsQuery, REVIEWED, rollBackPin } from "../../api/pins";
import { Problem } from "../../api/problem";
import { toast, toastProblem } from "../../components/toast";

export function useReview(agentId: string, path: string, done: () => void) {
  const queries = useQueryClient();
  const pins = useQuery(pinsQuery(agentId));
  const now = pins.data?.find((pin) => pin.path === path);
  const [shown, setShown] = useState<Pin>();
  const [superseded, setSuperseded] = useState(false);
  useEffect(() => {
    setShown((before) => before ?? now);
  }, [now]);

  const ended = (text: string) => {
    toast(text);
    for (const key of REVIEWED) void queries.invalidateQueries({ queryKey: [key] });
    done();
  };
  const accept = useMutation({
    mutationFn: (sha256: string) => acceptPin(agentId, path, sha256),
    meta: { quiet: true },
    onSuccess: () => ended(`${path} is accepted.`),
    onError: async (error) => {
      if (!(error instanceof Problem && error.status === 409)) return toastProblem(error);
      const { data } = await pins.refetch();
      setShown(data?.find((pin) => pin.path === path));
      setSuperseded(true);
    },
  });
  const rollBack = useMutation({
    mutationFn: () => rollBackPin(agentId, path),
    onSuccess: () => ended(`${path} is back at what was reviewed before.`),
  });

  return {
    pins,
    shown,
    superseded,
    /** Something newer was offered while this was being read. */
    newer: shown && now && now.latestSha256 !== shown.latestSha256 ? now : null,
    showNewer: () => {
      setShown(now);
      setSuperseded(true);
    },
    accept,
    rollBack,
    mayGoBack: useReviewedBefore(agentId, path),
  };
}

/** Whether the pin was ever moved: only then is there something to go back to. */
function useReviewedBefore(agentId: string, path: string): boolean {
  const { data } = useQuery(historyQuery({ kind: "agent", id: agentId }, path));
  return data?.items.some(({ reason }) => /^(accept|roll) /.test(reason)) ?? false;
}
