// Before a policy is saved: which files change class, and why that is wanted where it loosens.

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
      toast("The policy is saved.");
      onSaved(saved);
      onClose();
    },
  });
  const loosens = preview.data?.loosens ?? false;
  return (
    <FormDialog
      title="What this will do"
      action="Save the policy"
      busy={save.isPending}
      error={save.error ?? preview.error}
      disabled={!preview.data || (loosens && !reason.trim())}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {preview.isPending && <Loading label="Looking at every file" />}
      {preview.data && <Changes preview={preview.data} />}
      <Field
        label={loosens ? "Reason (needed)" : "Reason"}
        hint={
          loosens ? "Files would no longer wait for a review." : "Optional; it is in the audit."
        }
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
  if (!changes.length) return <p className="soft">No file changes its class.</p>;
  return (
    <>
      <p>
        {count === 1 ? "One file changes" : `${count} files change`} class.
        {loosens
          ? " Some become looser: they would follow their template at once."
          : " What becomes pinned stays for every agent as it is now."}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard */}
      <div className="table-wrap scrolled" role="region" aria-label="Changes" tabIndex={0}>
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
                <td className="unbroken">
                  {from} <ArrowRight size={12} aria-label="becomes" /> <strong>{to}</strong>
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
