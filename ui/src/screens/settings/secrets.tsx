// Secrets that are redacted from files. Values are write-only.

import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Lock, Plus, RefreshCw, Trash2 } from "lucide-react";
import { useState } from "react";
import { deleteSecret, putSecret, secretsQuery } from "../../api/secrets";
import { hasPermission } from "../../api/session";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { PagedRows } from "../../components/paged-rows";
import { EmptyState } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { SettingsSection } from "./settings-section";

type OpenDialog = { kind: "keep" | "forget"; id: string } | null;

export default function Secrets() {
  const [open, setOpen] = useState<OpenDialog>(null);
  const admin = hasPermission(useSession(), "tenant:admin");
  const close = () => setOpen(null);
  return (
    <SettingsSection
      title="Secrets"
      description="Values that are redacted from files, items and transcripts."
      action={
        admin && (
          <Button kind="primary" icon={Plus} onClick={() => setOpen({ kind: "keep", id: "" })}>
            New secret
          </Button>
        )
      }
    >
      {admin ? <Table onOpen={setOpen} /> : <AdminNotice feature="manage secrets" />}
      {open?.kind === "keep" && <SecretForm id={open.id} onClose={close} />}
      {open?.kind === "forget" && <DeleteDialog id={open.id} onClose={close} />}
    </SettingsSection>
  );
}

function Table({ onOpen }: { onOpen: (open: OpenDialog) => void }) {
  return (
    <PagedRows query={useInfiniteQuery(secretsQuery)} noun="secrets">
      {(secrets) =>
        secrets.length ? (
          <div className="table-wrap">
            <table className="table">
              <thead>
                <tr>
                  <th>ID</th>
                  <th>Created</th>
                  <th>Updated</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {secrets.map(({ id, createdAt, updatedAt }) => (
                  <tr key={id}>
                    <td>
                      <code>{escapeText(id, 80)}</code>
                    </td>
                    <td>
                      <Time at={createdAt} />
                    </td>
                    <td>
                      <Time at={updatedAt === createdAt ? null : updatedAt} />
                    </td>
                    <td>
                      <span className="row row-actions">
                        <Button
                          small
                          kind="plain"
                          icon={RefreshCw}
                          aria-label={`Replace ${escapeText(id, 60)}`}
                          onClick={() => onOpen({ kind: "keep", id })}
                        />
                        <Button
                          small
                          kind="plain"
                          icon={Trash2}
                          aria-label={`Delete ${escapeText(id, 60)}`}
                          onClick={() => onOpen({ kind: "forget", id })}
                        />
                      </span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <EmptyState icon={Lock} title="No secrets yet">
            <p>
              Store a password or API key here. Wherever it is written,{" "}
              <code>[REDACTED:its-id]</code> is stored instead.
            </p>
          </EmptyState>
        )
      }
    </PagedRows>
  );
}

function SecretForm({ id: existingId, onClose }: { id: string; onClose: () => void }) {
  const [id, setId] = useState(existingId);
  const [value, setValue] = useState("");
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () => putSecret(id.trim(), value),
    meta: { skipErrorToast: true },
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["secrets"] });
      toast("Secret saved");
      onClose();
    },
  });
  return (
    <FormDialog
      title={existingId ? `Replace ${escapeText(existingId, 60)}` : "New secret"}
      action="Save"
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field label="ID" hint="Stored in place of the value: [REDACTED:id].">
        <input
          className="input mono"
          required
          readOnly={Boolean(existingId)}
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
          title="Letters, digits, dots, dashes and underscores"
          value={id}
          onChange={(event) => setId(event.target.value)}
        />
      </Field>
      <Field label="Value" hint="At least 8 characters. Cannot be read again.">
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

function DeleteDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteSecret(id),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["secrets"] });
      toast("Secret deleted");
    },
    onSettled: onClose,
  });
  return (
    <Confirm
      title="Delete secret?"
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        New writes of <code>{escapeText(id, 80)}</code> are no longer redacted. Existing redactions
        stay.
      </p>
    </Confirm>
  );
}
