// Adding a person or changing one. Of themselves, members change their profile.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  addPerson,
  changeOwnProfile,
  changePerson,
  type Person,
  type PersonGiven,
  ROLES,
} from "../../api/people";
import { isAdmin } from "../../api/session";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";

type Draft = Record<"name" | "email" | "title" | "timezone" | "pronouns", string> & {
  role: PersonGiven["role"];
};

const draftOf = (person?: Person): Draft => ({
  name: person?.name ?? "",
  email: person?.email ?? "",
  role: person?.role ?? "member",
  title: person?.title ?? "",
  timezone: person?.timezone ?? "",
  pronouns: person?.pronouns ?? "",
});

const givenOf = (draft: Draft): PersonGiven => ({
  ...draft,
  name: draft.name.trim(),
  email: draft.email.trim(),
  title: draft.title.trim() || null,
  timezone: draft.timezone.trim() || null,
  pronouns: draft.pronouns.trim() || null,
});

export function PersonForm({ person, onClose }: { person?: Person; onClose: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(person));
  const session = useSession();
  const able = isAdmin(session);
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: async (): Promise<unknown> => {
      if (!person) return addPerson(givenOf(draft));
      if (!able) return changeOwnProfile(person.id, givenOf(draft));
      return changePerson(person.id, givenOf(draft));
    },
    meta: { quiet: true },
    onSuccess: () => {
      void queries.invalidateQueries();
      toast(person ? "Changed. USER.md of their agents follows." : "The person is added.");
      onClose();
    },
  });
  const fill = (change: Partial<Draft>) => setDraft((was) => ({ ...was, ...change }));
  return (
    <FormDialog
      title={person ? "Change the person" : "Add a person"}
      action={person ? "Save" : "Add"}
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Standing draft={draft} fill={fill} able={able} owner={session.role === "owner"} />
      <Profile draft={draft} fill={fill} />
    </FormDialog>
  );
}

interface PartProps {
  draft: Draft;
  fill: (change: Partial<Draft>) => void;
}

function Standing({ draft, fill, able, owner }: PartProps & { able: boolean; owner: boolean }) {
  return (
    <>
      <Field label="Name">
        <input
          className="input"
          required
          disabled={!able}
          value={draft.name}
          onChange={(event) => fill({ name: event.target.value })}
        />
      </Field>
      <div className="columns">
        <Field label="E-mail" hint={able ? undefined : "Owners and admins change it."}>
          <input
            className="input"
            type="email"
            required
            disabled={!able}
            value={draft.email}
            onChange={(event) => fill({ email: event.target.value })}
          />
        </Field>
        <Field label="Role" hint={owner ? undefined : "Only an owner makes owners."}>
          <select
            className="input"
            disabled={!able}
            value={draft.role}
            onChange={(event) => fill({ role: event.target.value as Draft["role"] })}
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

const ZONES = Intl.supportedValuesOf("timeZone");

function Profile({ draft, fill }: PartProps) {
  return (
    <>
      <div className="columns">
        <Field label="Title">
          <input
            className="input"
            value={draft.title}
            onChange={(event) => fill({ title: event.target.value })}
          />
        </Field>
        <Field label="Pronouns">
          <input
            className="input"
            value={draft.pronouns}
            onChange={(event) => fill({ pronouns: event.target.value })}
          />
        </Field>
      </div>
      <Field label="Timezone" hint="Such as Europe/Paris.">
        <input
          className="input"
          list="timezones"
          value={draft.timezone}
          onChange={(event) => fill({ timezone: event.target.value })}
        />
      </Field>
      <datalist id="timezones">
        {ZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}
