// One approval: the call, the decision form or the result, and details.

import { useQuery } from "@tanstack/react-query";
import { Eye } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { agentRecordQuery, isAgentOf } from "../../api/agent-records";
import type { Approval } from "../../api/approvals";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { LiteralText, MAX_CHARS } from "../../components/literal-text";
import { AgentName, PrincipalName } from "../../components/principal-name";
import { PropertyList } from "../../components/property-list";
import { Time } from "../../components/time";
import { ToolResult } from "../../components/tool-result";
import { useSession } from "../../layout/session-context";
import { ApprovalStatus, resultText } from "./approval-status";
import { DecisionForm } from "./decision-form";
import { TimeRemaining } from "./time-remaining";

export function ApprovalPage({ approval }: { approval: Approval }) {
  const open = approval.status === "requested";
  const [whole, setWhole] = useState(false);
  const isCut = !whole && Object.values(approval.input).some(isLong);
  return (
    <article className="stack" aria-label="Approval">
      <header className="row wrap">
        <h2>
          <AgentName id={approval.agentId} /> requests <code>{escapeText(approval.tool, 60)}</code>
        </h2>
        <span className="end">
          <ApprovalStatus status={approval.status} />
        </span>
      </header>
      {open && (
        <p className="soft">
          Requested <Time at={approval.requestedAt} />, <TimeRemaining until={approval.expiresAt} />
          .
        </p>
      )}
      <Input input={approval.input} whole={whole} />
      {isCut && (
        <p>
          <Button icon={Eye} onClick={() => setWhole(true)}>
            Show the whole call
          </Button>
        </p>
      )}
      {open ? <Decision approval={approval} isCut={isCut} /> : <Result approval={approval} />}
      <Details approval={approval} />
    </article>
  );
}

const literal = (value: unknown) =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

const isLong = (value: unknown) => literal(value).length > MAX_CHARS;

/** The arguments of the call, literally. */
function Input({ input, whole }: { input: Record<string, unknown>; whole: boolean }) {
  return (
    <section className="stack tight" aria-label="Input">
      {Object.entries(input).map(([name, value]) => (
        <div key={name} className="stack tight">
          <h3 className="mono bidi">{escapeText(name, 80)}</h3>
          <LiteralText text={literal(value)} label={escapeText(name, 80)} whole={whole} />
        </div>
      ))}
      {Object.keys(input).length === 0 && <p className="faint">No arguments</p>}
    </section>
  );
}

/** Decision form for owners, admins, and the agent's human or owner. */
function Decision({ approval, isCut }: { approval: Approval; isCut: boolean }) {
  const session = useSession();
  const agent = useQuery(agentRecordQuery(approval.agentId));
  const isMine = isAgentOf(agent.data, session.person?.id);
  if (isAdmin(session) || isMine) return <DecisionForm approval={approval} isCut={isCut} />;
  return <p className="notice">Only owners, admins and the agent’s human or owner can decide.</p>;
}

function Result({ approval }: { approval: Approval }) {
  const { answeredBy, answeredAt, reason, result, status } = approval;
  return (
    <section className="stack" aria-label="Result">
      <p>
        <strong>{resultText(approval)}</strong>
      </p>
      {answeredBy && (
        <p className="soft">
          <PrincipalName id={answeredBy} /> decided <Time at={answeredAt} />
          {reason && status !== "cancelled" ? ":" : "."}
        </p>
      )}
      {answeredBy && reason && status !== "cancelled" && (
        <blockquote className="quote bidi">{escapeText(reason, 2000)}</blockquote>
      )}
      {result && (
        <div className="stack tight">
          <h3>Response to the model</h3>
          <LiteralText text={result.content} label="Response to the model" />
          <ToolResult reply={result} workspaceId={approval.workspaceId} />
        </div>
      )}
    </section>
  );
}

function Details({ approval }: { approval: Approval }) {
  const { agentId, workspaceId, sandboxId, sessionId, runId, requestedBy, inputHash } = approval;
  const idLink = (to: string, id: string) => (
    <Link className="mono" to={to}>
      {escapeText(id, 60)}
    </Link>
  );
  const agent = `/agents/${encodeURIComponent(agentId)}`;
  return (
    <PropertyList
      items={[
        ["Requested by", <PrincipalName key="by" id={requestedBy} />],
        ["Requested", <Time key="at" at={approval.requestedAt} />],
        ["Workspace", workspaceId ? idLink(`/workspaces/${workspaceId}`, workspaceId) : "none"],
        ["Sandbox", sandboxId ? idLink(`/sandboxes/${sandboxId}`, sandboxId) : "none"],
        [
          "Session",
          sessionId
            ? idLink(`${agent}/sessions/${encodeURIComponent(sessionId)}`, sessionId)
            : "none",
        ],
        ["Run", runId ? idLink(`/runs/${runId}`, runId) : "none"],
        ["Scope", approval.scope],
        ["Input hash", <code key="hash">{inputHash.slice(0, 16)}</code>],
      ]}
    />
  );
}
