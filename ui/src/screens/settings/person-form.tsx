// Adds or edits a person. Members can edit their own profile.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  addPerson,
  changeOwnProfile,
  changePerson,
  type Person,
  type PersonBody,
  ROLES,
} from "../../api/people";
import { isAdmin } from "../../api/session";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

type PersonDraft = Record<"name" | "email" | "title" | "timezone" | "pronouns", string> & {
  role: PersonBody["role"];
};

const draftFromPerson = (person?: Person): PersonDraft => ({
  name: person?.name ?? "",
  email: person?.email ?? "",
  role: person?.role ?? "member",
  title: person?.title ?? "",
  timezone: person?.timezone ?? "",
  pronouns: person?.pronouns ?? "",
});

const bodyFromDraft = (draft: PersonDraft): PersonBody => ({
  ...draft,
  name: draft.name.trim(),
  email: draft.email.trim(),
  title: draft.title.trim() || null,
  timezone: draft.timezone.trim() || null,
  pronouns: draft.pronouns.trim() || null,
});

interface PersonFormProps {
  person?: Person;
  onClose: () => void;
  /** Called with a new person. */
  onAdded?: (person: Person) => void;
}

export function PersonForm({ person, onClose, onAdded }: PersonFormProps) {
  const [draft, setDraft] = useState(() => draftFromPerson(person));
  const [isInviting, setInviting] = useState(false);
  const session = useSession();
  const admin = isAdmin(session);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: async (): Promise<Person | unknown> => {
      if (!person) return addPerson(bodyFromDraft(draft));
      if (!admin) return changeOwnProfile(person.id, bodyFromDraft(draft));
      return changePerson(person.id, bodyFromDraft(draft));
    },
    meta: { skipErrorToast: true },
    onSuccess: (saved) => {
      void queries.invalidateQueries();
      toast(person ? "Person saved; USER.md of their agents is updated" : "Person added");
      onClose();
      if (!person && isInviting) onAdded?.(saved as Person);
    },
  });
  const update = (change: Partial<PersonDraft>) =>
    setDraft((current) => ({ ...current, ...change }));
  return (
    <FormDialog
      title={person ? "Edit person" : "Add person"}
      action={person ? "Save" : "Add"}
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <AccountFields draft={draft} update={update} admin={admin} owner={session.role === "owner"} />
      <ProfileFields draft={draft} update={update} />
      {!person && (
        <label className="check">
          <input
            type="checkbox"
            checked={isInviting}
            onChange={(event) => setInviting(event.target.checked)}
          />
          Invite with a sign-in link
        </label>
      )}
    </FormDialog>
  );
}

interface FieldsProps {
  draft: PersonDraft;
  update: (change: Partial<PersonDraft>) => void;
}

function AccountFields({
  draft,
  update,
  admin,
  owner,
}: FieldsProps & { admin: boolean; owner: boolean }) {
  return (
    <>
      <Field label="Name">
        <input
          className="input"
          required
          disabled={!admin}
          value={draft.name}
          onChange={(event) => update({ name: event.target.value })}
        />
      </Field>
      <div className="columns">
        <Field label="Email" hint={admin ? undefined : "Only owners and admins can change it."}>
          <input
            className="input"
            type="email"
            required
            disabled={!admin}
            value={draft.email}
            onChange={(event) => update({ email: event.target.value })}
          />
        </Field>
        <Field label="Role" hint={owner ? undefined : "Only owners can assign the owner role."}>
          <select
            className="input"
            disabled={!admin}
            value={draft.role}
            onChange={(event) => update({ role: event.target.value as PersonDraft["role"] })}
          >
            {Object.keys(ROLES).map((role) => (
              <option key={role} disabled={role === "owner" && !owner}>
                {role}
              </option>
            ))}
          </select>
        </Field>
      </div>
    </>
  );
}

const TIMEZONES = Intl.supportedValuesOf("timeZone");

function ProfileFields({ draft, update }: FieldsProps) {
  return (
    <>
      <div className="columns">
        <Field label="Title">
          <input
            className="input"
            value={draft.title}
            onChange={(event) => update({ title: event.target.value })}
          />
        </Field>
        <Field label="Pronouns">
          <input
            className="input"
            value={draft.pronouns}
            onChange={(event) => update({ pronouns: event.target.value })}
          />
        </Field>
      </div>
      <Field label="Timezone" hint="For example Europe/Paris.">
        <input
          className="input"
          list="timezones"
          value={draft.timezone}
          onChange={(event) => update({ timezone: event.target.value })}
        />
      </Field>
      <datalist id="timezones">
        {TIMEZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}
