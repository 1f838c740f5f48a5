// How an approval stands, in a word that colour only underlines.

import { Ban, Check, Clock, Hourglass, type LucideIcon, Play, X } from "lucide-react";
import type { Approval } from "../../api/approvals";

const STATUSES: Record<Approval["status"], [label: string, className: string, icon: LucideIcon]> = {
  requested: ["Waiting", "update", Hourglass],
  approved: ["Approved", "good", Check],
  running: ["Running", "good", Play],
  finished: ["Approved", "good", Check],
  denied: ["Denied", "bad", X],
  expired: ["Expired", "", Clock],
  cancelled: ["Cancelled", "", Ban],
};

export function ApprovalStatus({ status }: { status: Approval["status"] }) {
  const [label, className, Icon] = STATUSES[status];
  return (
    <span className={`badge ${className}`}>
      <Icon size={12} aria-hidden /> {label}
    </span>
  );
}

/** What became of it, in a sentence; empty while that is open. */
export function resultText({ status, result, reason }: Approval): string {
  switch (status) {
    case "requested":
      return "";
    case "approved":
      return "It was approved and is about to run.";
    case "running":
      return "It was approved and is running.";
    case "finished":
      return result?.isError
        ? "It was approved and ran, with an error."
        : "It was approved and ran.";
    case "denied":
      return "It was denied and did not run.";
    case "expired":
      return "Nobody answered in time, and it did not run.";
    case "cancelled":
      return `It did not run: ${reason || "what it depended on is gone"}.`;
  }
}
