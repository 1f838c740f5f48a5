// Notices about a file: updates, newer versions, warnings and errors.

import { useQuery } from "@tanstack/react-query";
import { AlertTriangle, GitMerge, Info, KeyRound, Lock, TriangleAlert } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";
import { useAuthorNames } from "../../api/authors";
import { type FileScope, historyQuery } from "../../api/files";
import { toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { ReviewDialog } from "../review/review-dialog";
import type { OpenFileProps } from "./file-pane";
import type { Draft } from "./use-draft";
import type { useSaveFile } from "./use-save-file";

interface FileNoticesProps extends OpenFileProps {
  draft: Draft;
  saving: ReturnType<typeof useSaveFile>;
  isManaged: boolean;
}

export function FileNotices(props: FileNoticesProps) {
  const { scope, row, isDeleted, canWrite, draft, saving, isManaged, pairingUrl } = props;
  return (
    <div className="file-notices">
      {row.file.error && (
        <Notice kind="bad" icon={AlertTriangle}>
          {toSentence(row.file.error)}
        </Notice>
      )}
      {scope.kind === "agent" && row.file.updateAvailable && <UpdateNotice {...props} />}
      {isManaged && <ManagedNotice url={pairingUrl} />}
      {!canWrite && !isManaged && (
        <Notice icon={Lock}>Read-only: only owners and admins can change this file.</Notice>
      )}
      {draft.newer && (
        <NewerVersionNotice
          scope={scope}
          path={row.path}
          onCompare={() =>
            saving.setConflict({
              base: draft.base.content ?? "",
              mine: draft.text(),
              theirs: draft.newer,
            })
          }
        />
      )}
      {isDeleted && (
        <Notice kind="update" icon={TriangleAlert}>
          This file was deleted. {canWrite && "Saving creates it again."}
        </Notice>
      )}
      {saving.warning && <SecretsNotice warning={saving.warning} />}
      {saving.problem && (
        <Notice kind="bad" icon={AlertTriangle} isAlert>
          <strong>Not saved.</strong> {toSentence(saving.problem)}
        </Notice>
      )}
    </div>
  );
}

interface NoticeProps {
  kind?: "bad" | "update";
  icon: typeof Info;
  isAlert?: boolean;
  action?: ReactNode;
  children: ReactNode;
}

function Notice({ kind, icon: Icon, isAlert, action, children }: NoticeProps) {
  return (
    <div className={`notice ${kind ?? ""}`} role={isAlert ? "alert" : "status"}>
      <Icon size={16} aria-hidden />
      <div className="grow">{children}</div>
      {action}
    </div>
  );
}

/** The template or the defaults have a newer version than was reviewed. */
function UpdateNotice({ scope, row, canWrite }: FileNoticesProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Notice
        kind="update"
        icon={TriangleAlert}
        action={
          <Button small onClick={() => setOpen(true)} disabled={!row.pinned}>
            Review
          </Button>
        }
      >
        <strong>Update available.</strong> The template or the defaults have a newer version.
        {!canWrite && " Only owners and admins can accept it."}
      </Notice>
      {isOpen && <ReviewDialog agentId={scope.id} path={row.path} onClose={() => setOpen(false)} />}
    </>
  );
}

const ManagedNotice = ({ url }: { url?: string }) => (
  <Notice icon={Info}>
    Generated from the profile of the agent’s human. To change it, edit{" "}
    {url && (
      <>
        <Link to={url}>the pairing</Link> or{" "}
      </>
    )}
    <Link to="/settings/people">the profile</Link>.
  </Notice>
);

function NewerVersionNotice({
  scope,
  path,
  onCompare,
}: {
  scope: FileScope;
  path: string;
  onCompare: () => void;
}) {
  const authorName = useAuthorNames();
  const { data } = useQuery(historyQuery(scope, path));
  const newest = data?.items[0];
  return (
    <Notice
      kind="update"
      icon={GitMerge}
      action={
        <Button small onClick={onCompare}>
          Compare
        </Button>
      }
    >
      <strong>
        Changed{newest ? ` by ${authorName(newest.author)}` : ""} while you were editing.
      </strong>{" "}
      Saving lets you merge both versions.
    </Notice>
  );
}

function SecretsNotice({ warning }: { warning: string }) {
  return (
    <Notice kind="update" icon={KeyRound} isAlert>
      {warning === "redacted" ? (
        <>
          <strong>Secret redacted.</strong> It was replaced by <code>[REDACTED:…]</code>.
        </>
      ) : (
        <>
          <strong>Saved with a warning:</strong> {warning}.
        </>
      )}
    </Notice>
  );
}
