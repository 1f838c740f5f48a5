// API keys, with create and revoke.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus, RefreshCw, Trash2 } from "lucide-react";
import { useState } from "react";
import { type CreatedKey, type Key, keysQuery, revokeKey, rotateKey } from "../../api/keys";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Confirm, Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { OneTimeSecretDialog } from "../../components/one-time-secret";
import { useShownRows } from "../../components/paged-rows";
import { PrincipalName } from "../../components/principal-name";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { KeyForm } from "./key-form";
import { SettingsSection } from "./settings-section";

export default function Keys() {
  const keys = useQuery(keysQuery);
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<CreatedKey | null>(null);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [rotating, setRotating] = useState<Key | null>(null);
  const admin = isAdmin(useSession());
  return (
    <SettingsSection
      title="API keys"
      description={
        admin
          ? "Credentials of people, services and agents. Only hashes are stored."
          : "Your own keys. Owners and admins manage the others."
      }
      action={
        <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
          Create API key
        </Button>
      }
    >
      <QueryResult query={keys}>
        {(rows) =>
          rows.length ? (
            <Table keys={rows} onRevoke={setRevoking} onRotate={setRotating} />
          ) : (
            <EmptyState icon={KeyRound} title="No API keys yet">
              <p>Programs authenticate with an API key. Create one per program.</p>
            </EmptyState>
          )
        }
      </QueryResult>
      {isCreating && <KeyForm onClose={() => setCreating(false)} onCreated={setCreated} />}
      {created && (
        <OneTimeSecretDialog
          title={`API key “${escapeText(created.name, 60)}” created`}
          label="API key"
          text={created.key}
          onClose={() => setCreated(null)}
        />
      )}
      {revoking && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
      {rotating && (
        <RotateDialog apiKey={rotating} onClose={() => setRotating(null)} onCreated={setCreated} />
      )}
    </SettingsSection>
  );
}

interface TableProps {
  keys: Key[];
  onRevoke: (key: Key) => void;
  onRotate: (key: Key) => void;
}

function Table({ keys, onRevoke, onRotate }: TableProps) {
  const latest = [...keys].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  const [shown, count] = useShownRows(latest, "keys");
  return (
    <>
      <div className="table-wrap">
        <table className="table">
          <thead>
            <tr>
              <th>Name</th>
              <th>Holder</th>
              <th className="only-large">Permissions</th>
              <th>Last used</th>
              <th className="only-large">Created</th>
              <th>
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((key) => (
              <Row
                key={key.id}
                apiKey={key}
                onRevoke={() => onRevoke(key)}
                onRotate={() => onRotate(key)}
              />
            ))}
          </tbody>
        </table>
      </div>
      {count}
    </>
  );
}

interface RowProps {
  apiKey: Key;
  onRevoke: () => void;
  onRotate: () => void;
}

function Row({ apiKey, onRevoke, onRotate }: RowProps) {
  const { name, prefix, kind, personId, agentId, workspace, scopes } = apiKey;
  return (
    <tr>
      <td className="name-cell">
        <span className="bidi">{escapeText(name, 60)}</span>
        <div className="faint mono">{escapeText(prefix, 20)}…</div>
      </td>
      <td>
        <span className="badge">{kind}</span>{" "}
        {(personId || agentId) && <PrincipalName id={personId ?? agentId} />}
        {workspace && <div className="faint mono">in {escapeText(workspace, 40)}</div>}
      </td>
      <td className="faint only-large">{scopes?.join(", ") ?? "all of the holder’s"}</td>
      <td>
        {apiKey.lastUsedAt ? <Time at={apiKey.lastUsedAt} /> : <span className="faint">never</span>}
      </td>
      <td className="only-large">
        <Time at={apiKey.createdAt} />
        {apiKey.expiresAt && (
          <div className="faint">
            expires <Time at={apiKey.expiresAt} />
          </div>
        )}
      </td>
      <td>
        <span className="row row-actions">
          <Button
            small
            kind="plain"
            icon={RefreshCw}
            aria-label={`Rotate ${escapeText(name, 60)}`}
            title="Replace by a new key"
            onClick={onRotate}
          />
          <Button
            small
            kind="plain"
            icon={Trash2}
            aria-label={`Revoke ${escapeText(name, 60)}`}
            title="Revoke"
            onClick={onRevoke}
          />
        </span>
      </td>
    </tr>
  );
}

interface RotateProps {
  apiKey: Key;
  onClose: () => void;
  onCreated: (key: CreatedKey) => void;
}

function RotateDialog({ apiKey, onClose, onCreated }: RotateProps) {
  const queries = useQueryClient();
  const session = useSession();
  const outlivesSession =
    session.expiresAt !== null && (apiKey.expiresAt ?? "9999") > session.expiresAt;
  const rotate = useMutation({
    mutationFn: () => rotateKey(apiKey.id),
    onSuccess: (created) => {
      void queries.invalidateQueries({ queryKey: ["keys"] });
      onCreated(created);
    },
    onSettled: onClose,
  });
  if (outlivesSession) {
    return (
      <Dialog
        title="Rotate API key"
        onClose={onClose}
        footer={<Button onClick={onClose}>Close</Button>}
      >
        <p className="bidi">
          <strong>{escapeText(apiKey.name, 80)}</strong> lives longer than your session, and a key
          cannot make one that outlives it. Rotate it with itself or with the owner’s token:
        </p>
        <pre className="literal mono">{`POST /v1/keys/${apiKey.id}/rotate`}</pre>
      </Dialog>
    );
  }
  return (
    <Confirm
      title="Rotate API key?"
      action="Rotate"
      busy={rotate.isPending}
      onConfirm={() => rotate.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        A new key takes the place of <strong>{escapeText(apiKey.name, 80)}</strong>, with the same
        holder, permissions and end. Both work for one hour; then the old one ends.
      </p>
    </Confirm>
  );
}

function RevokeDialog({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeKey(apiKey.id),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["keys"] });
      toast("API key revoked");
    },
    onSettled: onClose,
  });
  return (
    <Confirm
      title="Revoke API key?"
      action="Revoke"
      danger
      busy={revoke.isPending}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{escapeText(apiKey.name, 80)}</strong> (
        <code>{escapeText(apiKey.prefix, 20)}…</code>) stops working immediately. If this browser
        uses it, you are signed out.
      </p>
    </Confirm>
  );
}
