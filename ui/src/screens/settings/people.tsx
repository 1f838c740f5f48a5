// People of the account and their roles.

import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { Pencil, Plus, Send, Trash2 } from "lucide-react";
import { useDeferredValue, useState } from "react";
import {
  changeBlockedReason,
  invitePerson,
  ownerCountQuery,
  type Person,
  peoplePagesQuery,
  ROLES,
  removePerson,
} from "../../api/people";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { OneTimeSecretDialog } from "../../components/one-time-secret";
import { PagedRows } from "../../components/paged-rows";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { PersonForm } from "./person-form";
import { SettingsSection } from "./settings-section";

type OpenDialog = { kind: "add" } | { kind: "change" | "remove" | "invite"; person: Person } | null;

export default function People() {
  const [open, setOpen] = useState<OpenDialog>(null);
  const admin = isAdmin(useSession());
  const close = () => setOpen(null);
  return (
    <SettingsSection
      title="People"
      description="Users of this account, and the profiles that their agents see."
      action={
        admin && (
          <Button kind="primary" icon={Plus} onClick={() => setOpen({ kind: "add" })}>
            Add person
          </Button>
        )
      }
    >
      <Table onOpen={setOpen} />
      <dl className="definitions">
        {Object.entries(ROLES).map(([role, description]) => (
          <div key={role}>
            <dt>{role}</dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
      {open?.kind === "add" && (
        <PersonForm onClose={close} onAdded={(person) => setOpen({ kind: "invite", person })} />
      )}
      {open?.kind === "change" && <PersonForm person={open.person} onClose={close} />}
      {open?.kind === "remove" && <RemoveDialog person={open.person} onClose={close} />}
      {open?.kind === "invite" && <InviteDialog person={open.person} onClose={close} />}
    </SettingsSection>
  );
}

const MIN_FILTERED = 9;

function Table({ onOpen }: { onOpen: (open: OpenDialog) => void }) {
  const [filter, setFilter] = useState("");
  const q = useDeferredValue(filter.trim());
  const query = useInfiniteQuery({ ...peoplePagesQuery(q), placeholderData: keepPreviousData });
  const isLong = (query.data?.pages[0]?.total ?? 0) >= MIN_FILTERED;
  return (
    <>
      {(isLong || filter) && (
        <SearchField label="Filter people" value={filter} onChange={setFilter} />
      )}
      <PagedRows query={query} noun="people">
        {(rows) => <Rows people={rows} onOpen={onOpen} />}
      </PagedRows>
    </>
  );
}

interface RowsProps {
  people: Person[];
  onOpen: (open: OpenDialog) => void;
}

function Rows({ people, onOpen }: RowsProps) {
  const owners = useQuery(ownerCountQuery).data;
  if (people.length === 0) return <p className="faint">Nobody found</p>;
  return (
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
          {people.map((person) => (
            <Row
              key={person.id}
              person={person}
              isLastOwner={person.role === "owner" && owners === 1}
              onOpen={onOpen}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  person: Person;
  isLastOwner: boolean;
  onOpen: (open: OpenDialog) => void;
}

function Row({ person, isLastOwner, onOpen }: RowProps) {
  const session = useSession();
  const isSelf = session.person?.id === person.id;
  const blockedReason = changeBlockedReason(session, person);
  const lastOwnerReason = isLastOwner ? "The last owner cannot be removed." : "";
  const name = escapeText(person.name, 60);
  return (
    <tr>
      <td className="name-cell">
        <span className="bidi">{name}</span> {isSelf && <span className="badge accent">you</span>}
        <div className="faint bidi truncate">
          {escapeText(person.email, 100)}
          {person.pronouns && ` · ${escapeText(person.pronouns, 40)}`}
        </div>
      </td>
      <td>
        <span className="badge">{person.role}</span>
      </td>
      <td className="bidi only-large">
        {escapeText(person.title ?? "", 60) || <span className="faint">—</span>}
      </td>
      <td className="only-large">{person.timezone ?? <span className="faint">—</span>}</td>
      <td>
        <span className="row row-actions">
          {!blockedReason && !isSelf && (
            <Button
              small
              kind="plain"
              icon={Send}
              aria-label={`Invite ${name}`}
              title="Create a sign-in link"
              onClick={() => onOpen({ kind: "invite", person })}
            />
          )}
          <Button
            small
            kind="plain"
            icon={Pencil}
            aria-label={`Edit ${name}`}
            title={isSelf ? undefined : blockedReason || undefined}
            disabled={Boolean(blockedReason) && !isSelf}
            onClick={() => onOpen({ kind: "change", person })}
          />
          <Button
            small
            kind="plain"
            icon={Trash2}
            aria-label={`Remove ${name}`}
            title={blockedReason || lastOwnerReason || undefined}
            disabled={Boolean(blockedReason || lastOwnerReason)}
            onClick={() => onOpen({ kind: "remove", person })}
          />
        </span>
      </td>
    </tr>
  );
}

function InviteDialog({ person, onClose }: { person: Person; onClose: () => void }) {
  const invite = useMutation({ mutationFn: () => invitePerson(person.id) });
  const name = escapeText(person.name, 60);
  if (invite.data)
    return (
      <OneTimeSecretDialog
        title={`Sign-in link for ${name}`}
        label="Sign-in link"
        text={invite.data.link}
        onClose={onClose}
      />
    );
  return (
    <Confirm
      title={`Invite ${name}?`}
      action="Create link"
      busy={invite.isPending}
      onConfirm={() => invite.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        Creates a one-time sign-in link for <strong>{name}</strong>, valid for 24 hours. Earlier
        links end. The audit log shows who invited and who signed in.
      </p>
    </Confirm>
  );
}

function RemoveDialog({ person, onClose }: { person: Person; onClose: () => void }) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => removePerson(person.id),
    meta: { skipErrorToast: true },
    onSuccess: () => {
      void queries.invalidateQueries();
      toast(`${escapeText(person.name, 60)} removed`);
      onClose();
    },
  });
  return (
    <FormDialog
      title="Remove person?"
      action="Remove"
      danger
      busy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{escapeText(person.name, 80)}</strong> can no longer sign in, and their keys are
        revoked. Their agents are unpaired, and USER.md is updated.
      </p>
    </FormDialog>
  );
}
