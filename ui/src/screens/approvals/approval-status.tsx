// Status badge and result text of an approval.

import { Ban, Check, Clock, Hourglass, type LucideIcon, Play, X } from "lucide-react";
import type { Approval } from "../../api/approvals";

const STATUSES: Record<Approval["status"], [label: string, className: string, icon: LucideIcon]> = {
  requested: ["Pending", "update", Hourglass],
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

/** Result as a sentence; empty while pending. */
export function resultText({ status, result, reason }: Approval): string {
  switch (status) {
    case "requested":
      return "";
    case "approved":
      return "Approved, about to run.";
    case "running":
      return "Approved, running.";
    case "finished":
      return result?.isError ? "Approved and run, with an error." : "Approved and run.";
    case "denied":
      return "Denied, not run.";
    case "expired":
      return "Expired, not run.";
    case "cancelled":
      return `Cancelled, not run: ${reason || "a resource it needs was deleted"}.`;
  }
}
