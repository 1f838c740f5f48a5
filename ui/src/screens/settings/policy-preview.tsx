// Confirms a policy: files that change class, and the reason (required if it becomes looser).

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowRight } from "lucide-react";
import { useState } from "react";
import { type Policy, type PolicyPreview, previewPolicy, savePolicy } from "../../api/policy";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { Loading } from "../../components/query-states";
import { toast } from "../../components/toast";

interface PolicyPreviewProps {
  draft: Policy;
  onClose: () => void;
  onSaved: (policy: Policy) => void;
}

export function PolicyPreviewDialog({ draft, onClose, onSaved }: PolicyPreviewProps) {
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const preview = useQuery({
    queryKey: ["policy", "preview", draft],
    queryFn: () => previewPolicy(draft),
    retry: false,
    gcTime: 0,
  });
  const save = useMutation({
    mutationFn: () => savePolicy(draft, reason),
    meta: { skipErrorToast: true },
    onSuccess: (saved) => {
      queries.setQueryData(["policy"], saved);
      void queries.invalidateQueries();
      toast("Policy saved");
      onSaved(saved);
      onClose();
    },
  });
  const loosens = preview.data?.loosens ?? false;
  return (
    <FormDialog
      title="Save policy"
      action="Save policy"
      busy={save.isPending}
      error={save.error ?? preview.error}
      disabled={!preview.data || (loosens && !reason.trim())}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {preview.isPending && <Loading label="Checking files" />}
      {preview.data && <Changes preview={preview.data} />}
      <Field
        label={loosens ? "Reason (required)" : "Reason (optional)"}
        hint={loosens ? "Some files would no longer need review." : "Recorded in the audit log."}
      >
        <input
          className="input"
          required={loosens}
          value={reason}
          onChange={(event) => setReason(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}

function Changes({ preview: { changes, count, loosens } }: { preview: PolicyPreview }) {
  if (!changes.length) return <p className="soft">No file changes class.</p>;
  return (
    <>
      <p>
        {count === 1 ? "1 file changes" : `${count} files change`} class.
        {loosens
          ? " Files that become live follow their template at once."
          : " Files that become pinned stay at their current version."}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable */}
      <div className="table-wrap scrollable" role="region" aria-label="Changes" tabIndex={0}>
        <table className="table">
          <thead>
            <tr>
              <th>Path</th>
              <th>Class</th>
              <th className="number">Agents</th>
            </tr>
          </thead>
          <tbody>
            {changes.slice(0, 500).map(({ path, from, to, agents }) => (
              <tr key={path}>
                <td className="mono bidi">{escapeText(path)}</td>
                <td className="nowrap">
                  {from} <ArrowRight size={12} aria-label="to" /> <strong>{to}</strong>
                </td>
                <td className="number">{agents}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
