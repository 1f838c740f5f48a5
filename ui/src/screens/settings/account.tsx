// Name of the account.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { isAdmin } from "../../api/session";
import { renameTenant, tenantQuery } from "../../api/tenant";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { Field } from "../../components/field";
import { FormError } from "../../components/form-dialog";
import { QueryResult } from "../../components/query-states";
import { toast } from "../../components/toast";
import { useUnsavedDraft } from "../../components/unsaved-drafts";
import { useSession } from "../../layout/session-context";
import { SettingsSection } from "./settings-section";

export default function Account() {
  const admin = isAdmin(useSession());
  return (
    <SettingsSection
      title="Account"
      description="The name that agents are told and that the console shows."
    >
      {!admin && <AdminNotice feature="rename the account" />}
      <QueryResult query={useQuery(tenantQuery)}>
        {({ name, slug }) => <NameForm name={name} slug={slug} canEdit={admin} key={name} />}
      </QueryResult>
    </SettingsSection>
  );
}

interface NameFormProps {
  name: string;
  slug: string;
  canEdit: boolean;
}

function NameForm({ name, slug, canEdit }: NameFormProps) {
  const [draft, setDraft] = useState(name);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: () => renameTenant(draft.trim()),
    meta: { skipErrorToast: true },
    onSuccess: () => {
      void queries.invalidateQueries();
      toast("Account renamed; USER.md and placeholders are updated");
    },
  });
  const changed = draft.trim() !== name;
  useUnsavedDraft(changed && !save.isSuccess, "the account");
  return (
    <form
      className="card"
      aria-label="Account"
      onSubmit={(event) => {
        event.preventDefault();
        if (changed && draft.trim()) save.mutate();
      }}
    >
      <fieldset className="card-body stack plain-fieldset" disabled={!canEdit}>
        <Field label="Name" hint="The placeholder {{TENANT_NAME}}.">
          <input
            className="input"
            required
            value={draft}
            onChange={(event) => setDraft(event.target.value)}
          />
        </Field>
        <Field label="Slug" hint="Does not change.">
          <input className="input mono" readOnly value={slug} />
        </Field>
        <FormError error={save.error} />
        <div className="row">
          <span className="grow" />
          <Button kind="primary" type="submit" disabled={!changed} busy={save.isPending}>
            Save
          </Button>
        </div>
      </fieldset>
    </form>
  );
}
