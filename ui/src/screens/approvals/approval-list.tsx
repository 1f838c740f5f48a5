// List of approvals: j and k or the arrow keys move, Enter opens.

import { type KeyboardEvent, useEffect, useRef } from "react";
import { NavLink } from "react-router";
import type { Approval } from "../../api/approvals";
import { escapeText } from "../../components/escape-text";
import { useShownRows } from "../../components/paged-rows";
import { AgentName } from "../../components/principal-name";
import { Time } from "../../components/time";
import { ApprovalStatus } from "./approval-status";
import { TimeRemaining } from "./time-remaining";

const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && Boolean(target.closest("input, textarea, select, dialog"));

/** Moves the focus between the links of a list; j and k work on the whole page. */
export function useListNavigation() {
  const list = useRef<HTMLUListElement>(null);
  const step = (offset: number) => {
    const links = [...(list.current?.querySelectorAll("a") ?? [])];
    const current = links.indexOf(document.activeElement as HTMLAnchorElement);
    const next = current < 0 ? 0 : Math.min(links.length - 1, Math.max(0, current + offset));
    links[next]?.focus();
  };
  useEffect(() => {
    const handleKey = (event: globalThis.KeyboardEvent) => {
      const offset = { j: 1, k: -1 }[event.key];
      if (!offset || isTyping(event.target) || event.metaKey || event.ctrlKey || event.altKey)
        return;
      event.preventDefault();
      step(offset);
    };
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const offset = event.key.startsWith("Arrow") ? STEPS[event.key] : undefined;
    if (!offset) return;
    event.preventDefault();
    step(offset);
  };
  return { ref: list, onKeyDown };
}

export function ApprovalList({ approvals, search }: { approvals: Approval[]; search: string }) {
  const navigation = useListNavigation();
  const [shown, count] = useShownRows(approvals, "approvals");
  return (
    <div className="stack pane-list">
      <ul
        className="rows tall"
        aria-label="Approvals"
        ref={navigation.ref}
        onKeyDown={navigation.onKeyDown}
      >
        {shown.map((approval) => (
          <li key={approval.id}>
            <NavLink
              to={{ pathname: `/approvals/${approval.id}`, search }}
              className={({ isActive }) => (isActive ? "active" : "")}
            >
              <Row approval={approval} />
            </NavLink>
          </li>
        ))}
      </ul>
      {count}
    </div>
  );
}

function Row({ approval }: { approval: Approval }) {
  const { agentId, tool, input, status, expiresAt, answeredAt, finishedAt } = approval;
  return (
    <span className="stack tight grow">
      <span className="row">
        <strong className="truncate">
          <AgentName id={agentId} isLink={false} />
        </strong>
        <code>{escapeText(tool, 40)}</code>
        <span className="end">
          <ApprovalStatus status={status} />
        </span>
      </span>
      <span className="truncate mono faint bidi">
        {escapeText(inputSummary(input).replace(/\n/g, " ↵ "), 160)}
      </span>
      <span className="faint">
        {status === "requested" ? (
          <TimeRemaining until={expiresAt} />
        ) : (
          <Time at={answeredAt ?? finishedAt} />
        )}
      </span>
    </span>
  );
}

/** The most telling argument of a call. */
export function inputSummary(input: Record<string, unknown>): string {
  const value = input["command"] ?? input["file_path"] ?? input["path"] ?? Object.values(input)[0];
  return typeof value === "string" ? value : JSON.stringify(value ?? {});
}
