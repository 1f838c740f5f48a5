// Form that approves or denies a tool call.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Check, X } from "lucide-react";
import { useState } from "react";
import { type Approval, answerApproval } from "../../api/approvals";
import { Problem, toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Field } from "../../components/field";
import { toast } from "../../components/toast";
import { useUnsavedDraft } from "../../components/unsaved-drafts";

/** `isCut`: part of the call is not shown, so it cannot be approved yet. */
export function DecisionForm({ approval, isCut }: { approval: Approval; isCut: boolean }) {
  const [reason, setReason] = useState("");
  useUnsavedDraft(reason.trim() !== "", "your reason");
  const queries = useQueryClient();
  const decide = useMutation({
    mutationFn: (approved: boolean) => answerApproval(approval.id, approved, reason.trim()),
    meta: { skipErrorToast: true },
    onSuccess: (_, approved) => toast(approved ? "Approved" : "Denied"),
    onError: (error) => toast(decisionError(error), true),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["approvals"] });
      void queries.invalidateQueries({ queryKey: ["inbox"] });
    },
  });
  const isDeciding = (approved: boolean) => decide.isPending && decide.variables === approved;
  return (
    <form className="decision-form" onSubmit={(event) => event.preventDefault()}>
      <Field label="Reason" hint="Optional. Shown to the model if you deny.">
        <textarea
          className="input"
          maxLength={2000}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
      </Field>
      <div className="row">
        <Button
          kind="primary"
          icon={Check}
          busy={isDeciding(true)}
          disabled={decide.isPending || isCut}
          title={isCut ? "Show the whole call first" : undefined}
          onClick={() => decide.mutate(true)}
        >
          Approve
        </Button>
        <Button
          kind="danger"
          icon={X}
          busy={isDeciding(false)}
          disabled={decide.isPending}
          onClick={() => decide.mutate(false)}
        >
          Deny
        </Button>
      </div>
    </form>
  );
}

/** Message for a decision that the server refused. */
export function decisionError(error: unknown): string {
  if (error instanceof Problem && error.status === 410)
    return "This approval has expired. The call was not run.";
  return toSentence(error);
}
