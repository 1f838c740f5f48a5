// API keys, with create and revoke.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { type CreatedKey, type Key, keysQuery, revokeKey } from "../../api/keys";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { OneTimeSecretDialog } from "../../components/one-time-secret";
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
            <Table keys={rows} onRevoke={setRevoking} />
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
    </SettingsSection>
  );
}

function Table({ keys, onRevoke }: { keys: Key[]; onRevoke: (key: Key) => void }) {
  const latest = [...keys].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  return (
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
          {latest.slice(0, 500).map((key) => (
            <Row key={key.id} apiKey={key} onRevoke={() => onRevoke(key)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ apiKey, onRevoke }: { apiKey: Key; onRevoke: () => void }) {
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
        <Button
          small
          kind="plain"
          icon={Trash2}
          aria-label={`Revoke ${escapeText(name, 60)}`}
          onClick={onRevoke}
        />
      </td>
    </tr>
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
