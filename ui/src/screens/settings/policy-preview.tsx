// Confirms a policy: files that change class, the reason (required if it becomes looser), and
// files whose placeholders would no longer be filled.

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
  const [confirmed, setConfirmed] = useState(false);
  const queries = useQueryClient();
  const preview = useQuery({
    queryKey: ["policy", "preview", draft],
    queryFn: () => previewPolicy(draft),
    retry: false,
    gcTime: 0,
  });
  const save = useMutation({
    mutationFn: () => savePolicy(draft, reason, confirmed),
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
  const needsConfirmation = Boolean(preview.data?.placeholderFiles.length);
  return (
    <FormDialog
      title="Save policy"
      action="Save policy"
      busy={save.isPending}
      error={save.error ?? preview.error}
      disabled={!preview.data || (loosens && !reason.trim()) || (needsConfirmation && !confirmed)}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      {preview.isPending && <Loading label="Checking files" />}
      {preview.data && <Changes preview={preview.data} />}
      {preview.data && <UnusedRules preview={preview.data} />}
      {preview.data && needsConfirmation && (
        <PlaceholderFiles
          paths={preview.data.placeholderFiles}
          confirmed={confirmed}
          onConfirm={setConfirmed}
        />
      )}
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

interface PlaceholderFilesProps {
  paths: string[];
  confirmed: boolean;
  onConfirm: (confirmed: boolean) => void;
}

function PlaceholderFiles({ paths, confirmed, onConfirm }: PlaceholderFilesProps) {
  return (
    <>
      <p>
        Pinned files are served as written. Agents would see the placeholders of these files
        unfilled:
      </p>
      <ul className="mono bidi" aria-label="Files with placeholders">
        {paths.slice(0, 100).map((path) => (
          <li key={path}>{escapeText(path)}</li>
        ))}
      </ul>
      {paths.length > 100 && <p className="soft">And {paths.length - 100} more.</p>}
      <label className="check">
        <input
          type="checkbox"
          checked={confirmed}
          onChange={(event) => onConfirm(event.target.checked)}
        />
        Pin them with unfilled placeholders
      </label>
    </>
  );
}

function UnusedRules({ preview: { rules } }: { preview: PolicyPreview }) {
  const unused = rules.filter((rule) => rule.files === 0).map((rule) => escapeText(rule.pattern));
  if (!unused.length) return null;
  return <p className="soft">No file matches yet: {unused.join(", ")}</p>;
}
