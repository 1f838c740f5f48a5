// Approvals to choose from: j and k or the arrows move, Enter opens.

import { type KeyboardEvent, useEffect, useRef } from "react";
import { NavLink } from "react-router";
import type { Approval } from "../../api/approvals";
import { plain } from "../../components/escape-text";
import { AgentName } from "../../components/principal-name";
import { Time } from "../../components/time";
import { Standing } from "./approval-status";
import { Remaining } from "./time-remaining";

const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && Boolean(target.closest("input, textarea, select, dialog"));

/** Moves the focus among the links of a list; from elsewhere on the page it begins at the first. */
export function useSteps() {
  const list = useRef<HTMLUListElement>(null);
  const step = (by: number) => {
    const links = [...(list.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    const next = at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by));
    links[next]?.focus();
  };
  useEffect(() => {
    const pressed = (event: globalThis.KeyboardEvent) => {
      const by = { j: 1, k: -1 }[event.key];
      if (!by || isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      event.preventDefault();
      step(by);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key.startsWith("Arrow") ? STEPS[event.key] : undefined;
    if (!by) return;
    event.preventDefault();
    step(by);
  };
  return { ref: list, onKeyDown };
}

export function ApprovalList({ approvals, search }: { approvals: Approval[]; search: string }) {
  const steps = useSteps();
  return (
    <ul className="rows tall" aria-label="Approvals" ref={steps.ref} onKeyDown={steps.onKeyDown}>
      {approvals.slice(0, 500).map((approval) => (
        <li key={approval.id}>
          <NavLink
            to={{ pathname: `/approvals/${approval.id}`, search }}
            className={({ isActive }) => (isActive ? "on" : "")}
          >
            <Row approval={approval} />
          </NavLink>
        </li>
      ))}
      {approvals.length > 500 && (
        <li className="faint pane">and {approvals.length - 500} that are older</li>
      )}
    </ul>
  );
}

function Row({ approval }: { approval: Approval }) {
  const { agentId, tool, input, status, expiresAt, answeredAt, finishedAt } = approval;
  return (
    <span className="stack tight grow">
      <span className="row">
        <strong className="cut">
          <AgentName id={agentId} linked={false} />
        </strong>
        <code>{plain(tool, 40)}</code>
        <span className="end">
          <Standing status={status} />
        </span>
      </span>
      <span className="cut mono faint bidi">{plain(gist(input).replace(/\n/g, " ↵ "), 160)}</span>
      <span className="faint">
        {status === "requested" ? (
          <Remaining until={expiresAt} />
        ) : (
          <Time at={answeredAt ?? finishedAt} />
        )}
      </span>
    </span>
  );
}

/** The one argument that tells most, in a line. */
export function gist(input: Record<string, unknown>): string {
  const told = input["command"] ?? input["file_path"] ?? input["path"] ?? Object.values(input)[0];
  return typeof told === "string" ? told : JSON.stringify(told ?? {});
}
