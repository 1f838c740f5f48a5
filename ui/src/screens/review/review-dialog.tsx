// Stands in until the review of pinned files is here.

import { Dialog } from "../../parts/dialog";

export function ReviewDialog({
  path,
  onClose,
}: {
  agentId: string;
  path: string;
  onClose: () => void;
}) {
  return (
    <Dialog title={`Review ${path}`} onClose={onClose}>
      {null}
    </Dialog>
  );
}
