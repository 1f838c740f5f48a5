// Recent dreams, newest first.

import type { DreamRow } from "../../api/dreams";
import { Button } from "../../components/button";
import { Time } from "../../components/time";
import { REJECTION_REASONS } from "./rejection-reasons";

const STATUS_STYLES: Record<DreamRow["status"], string> = {
  done: "badge good",
  proposed: "badge update",
  rejected: "badge bad",
  superseded: "badge",
};

export const DreamStatus = ({ status }: { status: DreamRow["status"] }) => (
  <span className={STATUS_STYLES[status]}>{status}</span>
);

interface DreamTableProps {
  dreams: readonly DreamRow[];
  onSelect: (dream: string) => void;
}

export function DreamTable({ dreams, onSelect }: DreamTableProps) {
  return (
    <div className="table-wrap">
      <table className="table dream-table" aria-label="Dreams">
        <thead>
          <tr>
            <th scope="col">Started</th>
            <th scope="col">Status</th>
            <th scope="col" className="number">
              Promoted
            </th>
            <th scope="col" className="only-large">
              Not promoted
            </th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {dreams.map((dream) => (
            <tr key={dream.id}>
              <td>
                <Time at={dream.startedAt} />
              </td>
              <td>
                <DreamStatus status={dream.status} />
              </td>
              <td className="number">{dream.promotedCount}</td>
              <td className="only-large soft">{rejectionSummary(dream)}</td>
              <td className="number">
                <Button small onClick={() => onSelect(dream.id)}>
                  Details
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function rejectionSummary({ reasons, candidates }: DreamRow): string {
  const parts = Object.entries(reasons).map(
    ([reason, count]) => `${count} ${REJECTION_REASONS[reason] ?? reason}`,
  );
  if (parts.length > 0) return parts.join(", ");
  return candidates === 0 ? "nothing recalled" : "—";
}
