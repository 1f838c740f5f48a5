// What the tenant has decided, as a draft until it is looked at and saved.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Policy, policyQuery } from "../../api/policy";
import { may } from "../../api/session";
import { OnlyAdmins } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { Shown } from "../../components/query-states";
import { LeaveGuard } from "../../components/unsaved-changes-guard";
import { useSession } from "../../layout/session-context";
import { ClassRules } from "./class-rules";
import { Bounds, Redaction } from "./policy-limits";
import { PolicyPreview } from "./policy-preview";
import { Part } from "./settings-section";
import { Patterns } from "./writable-patterns";

export default function PolicyPage() {
  const able = may(useSession(), "tenant:admin");
  return (
    <Part
      title="Policy"
      under="Which files wait for a review, what is redacted, what fits and stays."
    >
      {!able && <OnlyAdmins what="Changing the policy" />}
      <Shown query={useQuery(policyQuery)}>
        {(policy) => <Draft policy={policy} able={able} />}
      </Shown>
    </Part>
  );
}

export type Fill = (change: Partial<Policy>) => void;

const same = (one: Policy, other: Policy) => JSON.stringify(one) === JSON.stringify(other);

function Draft({ policy, able }: { policy: Policy; able: boolean }) {
  const [base, setBase] = useState(policy);
  const [draft, setDraft] = useState(policy);
  const [previewing, setPreviewing] = useState(false);
  const changed = !same(draft, base);
  if (!changed && !same(policy, base)) {
    setBase(policy);
    setDraft(policy);
  }
  const fill: Fill = (change) => setDraft((was) => ({ ...was, ...change }));
  return (
    <>
      <LeaveGuard when={able && changed} path="the policy" />
      <form
        className="stack"
        aria-label="Policy"
        onSubmit={(event) => {
          event.preventDefault();
          setPreviewing(true);
        }}
      >
        <fieldset className="bare stack" disabled={!able}>
          <ClassRules rules={draft.classes} onChange={(classes) => fill({ classes })} />
          <Patterns
            patterns={draft.agentWritable}
            onChange={(agentWritable) => fill({ agentWritable })}
          />
          <Redaction policy={draft} fill={fill} />
          <Bounds policy={draft} fill={fill} />
        </fieldset>
        {changed && !same(policy, base) && (
          <p className="notice update" role="status">
            Somebody changed the policy meanwhile. Saving puts yours in its place.
          </p>
        )}
        {able && (
          <div className="policy-bar">
            <span className="soft grow">
              {changed ? "Changed, not saved yet." : "Nothing is changed."}
            </span>
            <Button disabled={!changed} onClick={() => setDraft(base)}>
              Undo
            </Button>
            <Button kind="primary" type="submit" disabled={!changed}>
              Preview and save
            </Button>
          </div>
        )}
      </form>
      {previewing && (
        <PolicyPreview
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
