// The vault: what must never stand in a file. Values go in and never come out.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Lock, Plus, RefreshCw, Trash2 } from "lucide-react";
import { useState } from "react";
import { forgetSecret, keepSecret, secretsQuery } from "../../api/secrets";
import { may } from "../../api/session";
import { OnlyAdmins } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { Empty, Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { Part } from "./settings-section";

type Open = { what: "keep" | "forget"; id: string } | null;

export default function Secrets() {
  const [open, setOpen] = useState<Open>(null);
  const able = may(useSession(), "tenant:admin");
  const close = () => setOpen(null);
  return (
    <Part
      title="Secrets"
      under="Wherever one of these values is written, its name is stored instead."
      action={
        able && (
          <Button kind="primary" icon={Plus} onClick={() => setOpen({ what: "keep", id: "" })}>
            Keep a secret
          </Button>
        )
      }
    >
      {able ? <Table onOpen={setOpen} /> : <OnlyAdmins what="The vault" />}
      {open?.what === "keep" && <Keeping id={open.id} onClose={close} />}
      {open?.what === "forget" && <Forgetting id={open.id} onClose={close} />}
    </Part>
  );
}

function Table({ onOpen }: { onOpen: (open: Open) => void }) {
  return (
    <Shown query={useQuery(secretsQuery)}>
      {(secrets) =>
        secrets.length ? (
          <div className="table-wrap">
            <table className="table">
              <thead>
                <tr>
                  <th>Id</th>
                  <th>Kept</th>
                  <th>Replaced</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {secrets.map(({ id, createdAt, updatedAt }) => (
                  <tr key={id}>
                    <td>
                      <code>{plain(id, 80)}</code>
                    </td>
                    <td>
                      <Time at={createdAt} />
                    </td>
                    <td>
                      <Time at={updatedAt === createdAt ? null : updatedAt} />
                    </td>
                    <td>
                      <span className="row end-of-row">
                        <Button
                          small
                          kind="plain"
                          icon={RefreshCw}
                          aria-label={`Replace ${plain(id, 60)}`}
                          onClick={() => onOpen({ what: "keep", id })}
                        />
                        <Button
                          small
                          kind="plain"
                          icon={Trash2}
                          aria-label={`Forget ${plain(id, 60)}`}
                          onClick={() => onOpen({ what: "forget", id })}
                        />
                      </span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <Empty icon={Lock} title="No secrets yet">
            <p>
              Keep a password or an API key here, and whoever writes it into a file, an item or a
              transcript leaves <code>[REDACTED:its-id]</code> there instead.
            </p>
          </Empty>
        )
      }
    </Shown>
  );
}

function Keeping({ id: known, onClose }: { id: string; onClose: () => void }) {
  const [id, setId] = useState(known);
  const [value, setValue] = useState("");
  const queries = useQueryClient();
  const keep = useMutation({
    mutationFn: () => keepSecret(id.trim(), value),
    meta: { quiet: true },
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["secrets"] });
      toast("The secret is kept: its value is redacted from now on.");
      onClose();
    },
  });
  return (
    <FormDialog
      title={known ? `Replace ${plain(known, 60)}` : "Keep a secret"}
      action="Keep"
      busy={keep.isPending}
      error={keep.error}
      onSubmit={() => keep.mutate()}
      onClose={onClose}
    >
      <Field label="Id" hint="What stands in place of it: [REDACTED:id].">
        <input
          className="input mono"
          required
          readOnly={Boolean(known)}
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
          title="Letters, digits, dots, dashes and underscores"
          value={id}
          onChange={(event) => setId(event.target.value)}
        />
      </Field>
      <Field label="Value" hint="At least 8 characters. Nobody can read it again.">
        <input
          className="input mono"
          type="password"
          autoComplete="new-password"
          required
          minLength={8}
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}

function Forgetting({ id, onClose }: { id: string; onClose: () => void }) {
  const queries = useQueryClient();
  const forget = useMutation({
    mutationFn: () => forgetSecret(id),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["secrets"] });
      toast("The secret is forgotten.");
    },
    onSettled: onClose,
  });
  return (
    <Confirm
      title="Forget the secret?"
      action="Forget"
      danger
      busy={forget.isPending}
      onConfirm={() => forget.mutate()}
      onClose={onClose}
    >
      <p>
        The value of <code>{plain(id, 80)}</code> will no longer be redacted from what is written.
        What was redacted stays so.
      </p>
    </Confirm>
  );
}
