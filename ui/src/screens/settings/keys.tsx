// Keys: who lets what in, when it was last used, and how to end it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { type CreatedKey, type Key, keysQuery, revokeKey } from "../../api/keys";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { ShownOnce } from "../../components/one-time-secret";
import { Who } from "../../components/principal-name";
import { Empty, Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { KeyForm } from "./key-form";
import { Part } from "./settings-section";

export default function Keys() {
  const keys = useQuery(keysQuery);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedKey | null>(null);
  const [ending, setEnding] = useState<Key | null>(null);
  const able = isAdmin(useSession());
  return (
    <Part
      title="Keys"
      under={
        able
          ? "What people, services and agents show to be let in. Only their hashes are kept."
          : "Your own keys. Those of services and agents are made by owners and admins."
      }
      action={
        <Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>
          Make a key
        </Button>
      }
    >
      <Shown query={keys}>
        {(found) =>
          found.length ? (
            <Table keys={found} onEnd={setEnding} />
          ) : (
            <Empty icon={KeyRound} title="No keys yet">
              <p>
                A program shows a key to be let in. Make one for each, and revoke it with the
                program.
              </p>
            </Empty>
          )
        }
      </Shown>
      {making && <KeyForm onClose={() => setMaking(false)} onMade={setMade} />}
      {made && (
        <ShownOnce
          title={`The key “${plain(made.name, 60)}” is made`}
          what="The key"
          text={made.key}
          onClose={() => setMade(null)}
        />
      )}
      {ending && <Revoking held={ending} onClose={() => setEnding(null)} />}
    </Part>
  );
}

function Table({ keys, onEnd }: { keys: Key[]; onEnd: (key: Key) => void }) {
  const latest = [...keys].sort((one, other) => other.createdAt.localeCompare(one.createdAt));
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
            <Row key={key.id} held={key} onEnd={() => onEnd(key)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ held, onEnd }: { held: Key; onEnd: () => void }) {
  const { name, prefix, kind, personId, agentId, workspace, scopes } = held;
  return (
    <tr>
      <td className="named">
        <span className="bidi">{plain(name, 60)}</span>
        <div className="faint mono">{plain(prefix, 20)}…</div>
      </td>
      <td>
        <span className="badge">{kind}</span>{" "}
        {(personId || agentId) && <Who id={personId ?? agentId} />}
        {workspace && <div className="faint mono">in {plain(workspace, 40)}</div>}
      </td>
      <td className="faint only-large">{scopes?.join(", ") ?? "all that its holder may"}</td>
      <td>
        {held.lastUsedAt ? <Time at={held.lastUsedAt} /> : <span className="faint">never</span>}
      </td>
      <td className="only-large">
        <Time at={held.createdAt} />
        {held.expiresAt && (
          <div className="faint">
            expires <Time at={held.expiresAt} />
          </div>
        )}
      </td>
      <td>
        <Button
          small
          kind="plain"
          icon={Trash2}
          aria-label={`Revoke ${plain(name, 60)}`}
          onClick={onEnd}
        />
      </td>
    </tr>
  );
}

function Revoking({ held, onClose }: { held: Key; onClose: () => void }) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeKey(held.id),
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
        Whoever uses <strong>{plain(held.name, 80)}</strong> (<code>{plain(held.prefix, 20)}…</code>
        ) is let in no more, from now on. If it is this browser’s own, you are signed out.
      </p>
    </Confirm>
  );
}
