// Actions that approve or reject a proposed dream.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Check, X } from "lucide-react";
import { useState } from "react";
import { approveDream, rejectDream } from "../../api/dreams";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

interface DreamReviewProps {
  agentId: string;
  dream: string;
  onClose: () => void;
}

export function DreamReview({ agentId, dream, onClose }: DreamReviewProps) {
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const canReview = isAdmin(useSession());
  const refresh = () => {
    for (const key of ["dreams", "memories", "inbox", "prompt", "files"])
      void queries.invalidateQueries({ queryKey: [key] });
  };
  const decide = useMutation({
    mutationFn: (approved: boolean) =>
      approved ? approveDream(agentId, dream) : rejectDream(agentId, dream, reason.trim()),
    onSuccess: (_dream, approved) => {
      toast(approved ? "Dream applied to MEMORY.md" : "Dream rejected");
      onClose();
    },
    onSettled: refresh,
  });
  if (!canReview) return <p className="faint grow">Only owners and admins can review dreams.</p>;
  return (
    <>
      <input
        className="input rejection-reason"
        aria-label="Rejection reason"
        placeholder="Rejection reason (optional)"
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.target.value)}
      />
      <Button
        kind="danger"
        icon={X}
        busy={decide.isPending && decide.variables === false}
        disabled={decide.isPending}
        onClick={() => decide.mutate(false)}
      >
        Reject
      </Button>
      <Button
        kind="primary"
        icon={Check}
        busy={decide.isPending && decide.variables === true}
        disabled={decide.isPending}
        onClick={() => decide.mutate(true)}
      >
        Approve
      </Button>
    </>
  );
}
