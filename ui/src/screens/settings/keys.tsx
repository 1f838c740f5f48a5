// Keys: who lets what in, when it was last used, and how to end it.

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
      title="Keys"
      description={
        admin
          ? "What people, services and agents show to be let in. Only their hashes are kept."
          : "Your own keys. Those of services and agents are made by owners and admins."
      }
      action={
        <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
          Make a key
        </Button>
      }
    >
      <QueryResult query={keys}>
        {(rows) =>
          rows.length ? (
            <Table keys={rows} onRevoke={setRevoking} />
          ) : (
            <EmptyState icon={KeyRound} title="No keys yet">
              <p>
                A program shows a key to be let in. Make one for each, and revoke it with the
                program.
              </p>
            </EmptyState>
          )
        }
      </QueryResult>
      {isCreating && <KeyForm onClose={() => setCreating(false)} onCreated={setCreated} />}
      {created && (
        <OneTimeSecretDialog
          title={`The key “${escapeText(created.name, 60)}” is made`}
          label="The key"
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
            <th>Of</th>
            <th className="only-large">May</th>
            <th>Last used</th>
            <th className="only-large">Made</th>
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
      <td className="named">
        <span className="bidi">{escapeText(name, 60)}</span>
        <div className="faint mono">{escapeText(prefix, 20)}…</div>
      </td>
      <td>
        <span className="badge">{kind}</span>{" "}
        {(personId || agentId) && <PrincipalName id={personId ?? agentId} />}
        {workspace && <div className="faint mono">in {escapeText(workspace, 40)}</div>}
      </td>
      <td className="faint only-large">{scopes?.join(", ") ?? "all that its holder may"}</td>
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
      toast("The key is revoked.");
    },
    onSettled: onClose,
  });
  return (
    <Confirm
      title="Revoke the key?"
      action="Revoke"
      danger
      busy={revoke.isPending}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        Whoever uses <strong>{escapeText(apiKey.name, 80)}</strong> (
        <code>{escapeText(apiKey.prefix, 20)}…</code>) is let in no more, from now on. If it is this
        browser’s own, you are signed out.
      </p>
    </Confirm>
  );
}
