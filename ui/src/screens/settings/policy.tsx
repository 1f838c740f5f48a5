// Policy form with preview before saving.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Policy, policyQuery } from "../../api/policy";
import { hasPermission } from "../../api/session";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { QueryResult } from "../../components/query-states";
import { useUnsavedDraft } from "../../components/unsaved-drafts";
import { useSession } from "../../layout/session-context";
import { ClassRules } from "./class-rules";
import { LimitsSection, RedactionSection } from "./policy-limits";
import { PolicyPreviewDialog } from "./policy-preview";
import { SettingsSection } from "./settings-section";
import { WritablePatterns } from "./writable-patterns";

export default function PolicyPage() {
  const canEdit = hasPermission(useSession(), "tenant:admin");
  return (
    <SettingsSection
      title="Policy"
      description="File classes, agent-writable files, redaction, retention and limits."
    >
      {!canEdit && <AdminNotice feature="change the policy" />}
      <QueryResult query={useQuery(policyQuery)}>
        {(policy) => <PolicyForm policy={policy} canEdit={canEdit} />}
      </QueryResult>
    </SettingsSection>
  );
}

export type UpdatePolicy = (change: Partial<Policy>) => void;

const isEqual = (a: Policy, b: Policy) => JSON.stringify(a) === JSON.stringify(b);

function PolicyForm({ policy, canEdit }: { policy: Policy; canEdit: boolean }) {
  const [base, setBase] = useState(policy);
  const [draft, setDraft] = useState(policy);
  const [isPreviewing, setPreviewing] = useState(false);
  const changed = !isEqual(draft, base);
  if (!changed && !isEqual(policy, base)) {
    setBase(policy);
    setDraft(policy);
  }
  useUnsavedDraft(canEdit && changed, "the policy");
  const update: UpdatePolicy = (change) => setDraft((current) => ({ ...current, ...change }));
  return (
    <>
      <form
        className="stack"
        aria-label="Policy"
        onSubmit={(event) => {
          event.preventDefault();
          setPreviewing(true);
        }}
      >
        <fieldset className="plain-fieldset stack" disabled={!canEdit}>
          <ClassRules rules={draft.classes} onChange={(classes) => update({ classes })} />
          <WritablePatterns
            patterns={draft.agentWritable}
            onChange={(agentWritable) => update({ agentWritable })}
          />
          <RedactionSection policy={draft} update={update} />
          <LimitsSection policy={draft} update={update} />
        </fieldset>
        {changed && !isEqual(policy, base) && (
          <p className="notice update" role="status">
            The policy was changed meanwhile. Saving overwrites that change.
          </p>
        )}
        {canEdit && (
          <div className="policy-bar">
            <span className="soft grow">{changed ? "Unsaved changes" : "No unsaved changes"}</span>
            <Button disabled={!changed} onClick={() => setDraft(base)}>
              Discard
            </Button>
            <Button kind="primary" type="submit" disabled={!changed}>
              Preview and save
            </Button>
          </div>
        )}
      </form>
      {isPreviewing && (
        <PolicyPreviewDialog
          draft={draft}
          onClose={() => setPreviewing(false)}
          onSaved={(saved) => {
            setBase(saved);
            setDraft(saved);
          }}
        />
      )}
    </>
  );
}
