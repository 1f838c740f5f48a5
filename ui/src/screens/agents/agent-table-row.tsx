import { AlertTriangle } from "lucide-react";
import { memo } from "react";
import { Link } from "react-router";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import type { AgentRow } from "./agent-list";

/** One agent. The row links to its workspace; template and run have links of their own. */
export const AgentTableRow = memo(function AgentTableRow({
  row,
  index,
  isSelected,
  onToggle,
}: {
  row: AgentRow;
  index: number;
  isSelected: boolean;
  /** Absent if the agent cannot be selected. */
  onToggle?: (() => void) | undefined;
}) {
  const { template, humanPair: human } = row;
  return (
    <tr aria-rowindex={index}>
      <td className="name">
        {onToggle && (
          <input
            type="checkbox"
            className="row-check"
            aria-label={`Select ${escapeText(row.name, 60)}`}
            checked={isSelected}
            onChange={onToggle}
          />
        )}
        <Link className="row-link truncate bidi" to={`/agents/${row.id}/workspace`}>
          {escapeText(row.name, 120)}
        </Link>
        <span className="secondary">
          <span className="mono truncate">{row.slug}</span>
          {row.isShared && <span className="badge">shared</span>}
          {template && (
            <span className="only-small truncate bidi">{escapeText(template.name, 40)}</span>
          )}
        </span>
      </td>
      <td className="only-large">
        {template ? (
          <Link className="truncate bidi" to={`/agent-templates/${template.id}`}>
            {escapeText(template.name, 80)}
          </Link>
        ) : (
          <NoValue />
        )}
      </td>
      <td className="only-large">
        {human ? <span className="truncate bidi">{escapeText(human.name, 80)}</span> : <NoValue />}
      </td>
      <td className="number only-large">{row.overrideCount || <NoValue />}</td>
      <td className="number updates">
        <Updates count={row.updatesAvailable ?? 0} />
      </td>
      <td className="run only-large">
        <LastRun run={row.lastRun} />
      </td>
    </tr>
  );
});

const NoValue = () => <span className="faint">—</span>;

function Updates({ count }: { count: number }) {
  if (count === 0) return <NoValue />;
  return (
    <span className="badge update" title={`${count} to review`}>
      <AlertTriangle size={12} aria-hidden />
      {count}
    </span>
  );
}

const STATUS_STYLES = {
  running: "accent",
  completed: "good",
  failed: "bad",
  cancelled: "",
  abandoned: "update",
};

function LastRun({ run }: { run: AgentRow["lastRun"] }) {
  if (!run) return <NoValue />;
  return (
    <Link className="last-run" to={`/runs/${run.id}`}>
      <span className={`badge ${STATUS_STYLES[run.status]}`}>{run.status}</span>
      <Time at={run.startedAt} />
    </Link>
  );
}
