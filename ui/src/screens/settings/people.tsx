// The people of the account: who they are, what they may do.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import {
  barsChange,
  isLastOwner,
  type Person,
  peopleQuery,
  ROLES,
  removePerson,
} from "../../api/people";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { Shown } from "../../components/query-states";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { PersonForm } from "./person-form";
import { Part } from "./settings-section";

type Open = { what: "add" } | { what: "change" | "remove"; person: Person } | null;

export default function People() {
  const people = useQuery(peopleQuery);
  const [open, setOpen] = useState<Open>(null);
  const able = isAdmin(useSession());
  const close = () => setOpen(null);
  return (
    <Part
      title="People"
      under="Who may sign in, and what agents know of them."
      action={
        able && (
          <Button kind="primary" icon={Plus} onClick={() => setOpen({ what: "add" })}>
            Add a person
          </Button>
        )
      }
    >
      <Shown query={people}>{(found) => <Table people={found} onOpen={setOpen} />}</Shown>
      <dl className="meanings">
        {Object.entries(ROLES).map(([role, says]) => (
          <div key={role}>
            <dt>{role}</dt>
            <dd>{says}</dd>
          </div>
        ))}
      </dl>
      {open?.what === "add" && <PersonForm onClose={close} />}
      {open?.what === "change" && <PersonForm person={open.person} onClose={close} />}
      {open?.what === "remove" && <Removing person={open.person} onClose={close} />}
    </Part>
  );
}

function Table({ people, onOpen }: { people: Person[]; onOpen: (open: Open) => void }) {
  const [sought, setSought] = useState("");
  const fits = ({ name, email }: Person) =>
    `${name} ${email}`.toLowerCase().includes(sought.toLowerCase());
  const found = people.filter(fits);
  return (
    <>
      {people.length > 8 && (
        <SearchField label="Find a person" value={sought} onChange={setSought} />
      )}
      <div className="table-wrap">
        <table className="table">
          <thead>
            <tr>
              <th>Name</th>
              <th>Role</th>
              <th className="only-large">Title</th>
              <th className="only-large">Timezone</th>
              <th>
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, 500).map((person) => (
              <Row key={person.id} person={person} people={people} onOpen={onOpen} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface RowProps {
  person: Person;
  people: Person[];
  onOpen: (open: Open) => void;
}

function Row({ person, people, onOpen }: RowProps) {
  const session = useSession();
  const self = session.person?.id === person.id;
  const barred = barsChange(session, person);
  const last = isLastOwner(people, person) ? "The last owner stays." : "";
  const name = plain(person.name, 60);
  return (
    <tr>
      <td className="named">
        <span className="bidi">{name}</span> {self && <span className="badge accent">you</span>}
        <div className="faint bidi cut">
          {plain(person.email, 100)}
          {person.pronouns && ` · ${plain(person.pronouns, 40)}`}
        </div>
      </td>
      <td>
        <span className="badge">{person.role}</span>
      </td>
      <td className="bidi only-large">
        {plain(person.title ?? "", 60) || <span className="faint">—</span>}
      </td>
      <td className="only-large">{person.timezone ?? <span className="faint">—</span>}</td>
      <td>
        <span className="row end-of-row">
          <Button
            small
            kind="plain"
            icon={Pencil}
            aria-label={`Change ${name}`}
            title={self ? undefined : barred || undefined}
            disabled={Boolean(barred) && !self}
            onClick={() => onOpen({ what: "change", person })}
          />
          <Button
            small
            kind="plain"
            icon={Trash2}
            aria-label={`Remove ${name}`}
            title={barred || last || undefined}
            disabled={Boolean(barred || last)}
            onClick={() => onOpen({ what: "remove", person })}
          />
        </span>
      </td>
    </tr>
  );
}

function Removing({ person, onClose }: { person: Person; onClose: () => void }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => removePerson(person.id),
    meta: { quiet: true },
    onSuccess: () => {
      void queries.invalidateQueries();
      toast(`${plain(person.name, 60)} is removed.`);
      onClose();
    },
  });
  return (
    <FormDialog
      title="Remove the person?"
      action="Remove"
      danger
      busy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{plain(person.name, 80)}</strong> can no longer sign in: all their keys are revoked.
        Agents that work for them are unpaired, and their USER.md is written anew.
      </p>
    </FormDialog>
  );
}
