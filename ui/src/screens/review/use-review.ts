// State of a review. The shown version stays until the reader asks for a newer one, and only the
// shown version can be accepted.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { historyQuery } from "../../api/files";
import { acceptPin, type Pin, pinsQuery, REVIEW_QUERY_KEYS, rollBackPin } from "../../api/pins";
import { Problem } from "../../api/problem";
import { declinePin, undoNewestReview } from "../../api/reviews";
import { toast, toastProblem } from "../../components/toast";

export function useReview(agentId: string, path: string, onDone: () => void) {
  const queries = useQueryClient();
  const pins = useQuery(pinsQuery(agentId));
  const latest = pins.data?.find((candidate) => candidate.path === path);
  const [pin, setPin] = useState<Pin>();
  const [isSuperseded, setSuperseded] = useState(false);
  useEffect(() => {
    setPin((current) => current ?? latest);
  }, [latest]);

  const refresh = () => {
    for (const key of REVIEW_QUERY_KEYS) void queries.invalidateQueries({ queryKey: [key] });
  };
  const finish = (text: string, canUndo = false) => {
    const run = async () => {
      await undoNewestReview(agentId, path);
      refresh();
      toast(`Rolled back ${path}`);
    };
    toast(text, false, canUndo ? { label: "Undo", run } : undefined);
    refresh();
    onDone();
  };
  const decline = useMutation({
    mutationFn: (reason: string) => declinePin(agentId, path, pin?.latestSha256 ?? null, reason),
    onSuccess: () => finish(`Declined ${path}`, true),
  });
  const accept = useMutation({
    mutationFn: (sha256: string | null) => acceptPin(agentId, path, sha256),
    meta: { skipErrorToast: true },
    onSuccess: () => finish(`Accepted ${path}`, true),
    onError: async (error) => {
      if (!(error instanceof Problem && error.status === 409)) return toastProblem(error);
      const { data } = await pins.refetch();
      setPin(data?.find((candidate) => candidate.path === path));
      setSuperseded(true);
    },
  });
  const rollBack = useMutation({
    mutationFn: () => rollBackPin(agentId, path),
    onSuccess: () => finish(`Rolled back ${path}`),
  });

  return {
    pins,
    pin,
    isSuperseded,
    /** A version newer than the shown one, or null. */
    newer: pin && latest && latest.latestSha256 !== pin.latestSha256 ? latest : null,
    showNewer: () => {
      setPin(latest);
      setSuperseded(true);
    },
    accept,
    decline,
    rollBack,
    canRollBack: useHasEarlierReview(agentId, path),
  };
}

/** Whether the pin was ever changed, so that a rollback is possible. */
function useHasEarlierReview(agentId: string, path: string): boolean {
  const { data } = useQuery(historyQuery({ kind: "agent", id: agentId }, path));
  return data?.items.some(({ reason }) => /^(accept|merge|roll) /.test(reason)) ?? false;
}
