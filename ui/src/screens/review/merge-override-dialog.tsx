// Merge of an offered text into an agent's override, edited before it is saved.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { REVIEW_QUERY_KEYS } from "../../api/pins";
import { proposeMerge, saveMerge } from "../../api/reviews";
import { escapeText } from "../../components/escape-text";
import { FormDialog } from "../../components/form-dialog";
import { QueryResult } from "../../components/query-states";
import { toast } from "../../components/toast";

interface MergeOverrideDialogProps {
  agentId: string;
  path: string;
  onClose: () => void;
  onSaved: () => void;
}

const CONFLICT = /^(<<<<<<< |>>>>>>> )/m;

export function MergeOverrideDialog({ agentId, path, onClose, onSaved }: MergeOverrideDialogProps) {
  const queries = useQueryClient();
  // Static: events must not replace the proposal that the reader edits.
  const proposal = useQuery({
    queryKey: ["merge-proposal", agentId, path],
    queryFn: () => proposeMerge(agentId, path),
    gcTime: 0,
    staleTime: "static",
  });
  const [edited, setEdited] = useState<string | null>(null);
  const text = edited ?? proposal.data?.content ?? "";
  const hasConflict = CONFLICT.test(text);
  const save = useMutation({
    mutationFn: (merge: { sha256: string; ifMatch: string }) =>
      saveMerge(agentId, path, { ...merge, content: text }),
    meta: { skipErrorToast: true },
    onSuccess: () => {
      toast(`Merged ${path}`);
      for (const key of REVIEW_QUERY_KEYS) void queries.invalidateQueries({ queryKey: [key] });
      onSaved();
    },
  });
  return (
    <FormDialog
      wide
      title={<span className="bidi">{`Merge ${escapeText(path, 120)} into the override`}</span>}
      action="Save merge"
      busy={save.isPending}
      error={save.error}
      disabled={!proposal.data || hasConflict}
      onClose={onClose}
      onSubmit={() => {
        const { data } = proposal;
        if (data) save.mutate({ sha256: data.sha256, ifMatch: data.ifMatch });
      }}
    >
      <QueryResult query={proposal}>
        {({ conflicts }) => (
          <div className="stack">
            <p className="soft">
              The override with the changes of the update.{" "}
              {conflicts > 0
                ? `${conflicts === 1 ? "1 conflict is" : `${conflicts} conflicts are`} marked.`
                : "Nothing conflicts."}{" "}
              Saving pins the update.
            </p>
            <textarea
              className="input mono"
              rows={20}
              aria-label="Merged text"
              value={text}
              onChange={(event) => setEdited(event.target.value)}
            />
            <p className="faint" role="status">
              {hasConflict && "Resolve the conflicts and remove their marks."}
            </p>
          </div>
        )}
      </QueryResult>
    </FormDialog>
  );
}
