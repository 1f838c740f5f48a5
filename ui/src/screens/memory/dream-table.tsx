// The last dreams, newest first.

import type { DreamRow } from "../../api/dreams";
import { Button } from "../../components/button";
import { Time } from "../../components/time";
import { REASONS } from "./rejection-reasons";

const LOOKS: Record<DreamRow["status"], string> = {
  done: "badge good",
  proposed: "badge update",
  rejected: "badge bad",
  superseded: "badge",
};

export const DreamStatus = ({ status }: { status: DreamRow["status"] }) => (
  <span className={LOOKS[status]}>{status}</span>
);

interface DreamTableProps {
  dreams: readonly DreamRow[];
  onChoose: (dream: string) => void;
}

export function DreamTable({ dreams, onChoose }: DreamTableProps) {
  return (
    <div className="table-wrap">
      <table className="table dream-table" aria-label="Dreams">
        <thead>
          <tr>
            <th scope="col">Dreamed</th>
            <th scope="col">Status</th>
            <th scope="col" className="number">
              Promoted
            </th>
            <th scope="col" className="only-large">
              Not promoted, and why
            </th>
            <th scope="col">
              <span className="visually-hidden">Look</span>
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
              <td className="only-large soft">{whyNot(dream)}</td>
              <td className="number">
                <Button small onClick={() => onChoose(dream.id)}>
                  Look
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function whyNot({ reasons, candidates }: DreamRow): string {
  const told = Object.entries(reasons).map(([why, count]) => `${count} ${REASONS[why] ?? why}`);
  if (told.length > 0) return told.join(", ");
  return candidates === 0 ? "nothing had been recalled" : "—";
}
