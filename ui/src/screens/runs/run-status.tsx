// Status badge of a run.

import {
  CheckCircle2,
  CircleSlash,
  LoaderCircle,
  type LucideIcon,
  Unplug,
  XCircle,
} from "lucide-react";
import type { RunStatus } from "../../api/runs";

export const STATUSES: RunStatus[] = ["running", "completed", "failed", "cancelled", "abandoned"];

const STATUS_STYLES: Record<RunStatus, { icon: LucideIcon; className: string }> = {
  running: { icon: LoaderCircle, className: "accent" },
  completed: { icon: CheckCircle2, className: "good" },
  failed: { icon: XCircle, className: "bad" },
  cancelled: { icon: CircleSlash, className: "" },
  abandoned: { icon: Unplug, className: "update" },
};

export function RunStatusBadge({ status }: { status: RunStatus }) {
  const { icon: Icon, className } = STATUS_STYLES[status];
  return (
    <span className={`badge ${className}`}>
      <Icon size={13} aria-hidden />
      {status}
    </span>
  );
}
