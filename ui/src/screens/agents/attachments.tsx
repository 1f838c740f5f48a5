import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { sandboxChoices, workspaceChoices } from "../../api/select-options";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { Field } from "../../components/field";
import type { Attachment } from "./config";

interface SandboxChoiceProps {
  label: string;
  value: string;
  none: string;
  /** A choice before all sandboxes, with its value. */
  first?: { value: string; name: string };
  onChange: (id: string) => void;
}

export function SandboxChoice({ label, value, none, first, onChange }: SandboxChoiceProps) {
  const { data = [] } = useQuery(sandboxChoices);
  const known = data.some(({ sandboxId }) => sandboxId === value) || !value;
  return (
    <Field label={label}>
      <select className="input" value={value} onChange={(event) => onChange(event.target.value)}>
        {first && <option value={first.value}>{first.name}</option>}
        <option value="">{none}</option>
        {data.map(({ sandboxId, name }) => (
          <option key={sandboxId} value={sandboxId}>
            {plain(name, 60)}
          </option>
        ))}
        {!known && value !== first?.value && (
          <option value={value}>{plain(value, 60)} (not there)</option>
        )}
      </select>
    </Field>
  );
}

interface AttachmentsProps {
  attached: Attachment[];
  onChange: (attached: Attachment[]) => void;
}

/** The workspaces that the agent reaches, the first of which is the usual one. */
export function Attachments({ attached, onChange }: AttachmentsProps) {
  const { data = [] } = useQuery(workspaceChoices);
  const put = (at: number, some: Attachment) =>
    onChange(attached.map((each, n) => (n === at ? some : each)));
  const first = data[0];
  const add = () =>
    first && onChange([...attached, { name: free(attached), workspaceId: first.workspaceId }]);
  return (
    <div className="stack">
      {attached.map((each, at) => (
        <AttachmentRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place in the list
          key={at}
          at={at}
          attachment={each}
          workspaces={data}
          onChange={(some) => put(at, some)}
          onRemove={() => onChange(attached.filter((_, n) => n !== at))}
        />
      ))}
      {first ? (
        <div>
          <Button small icon={Plus} onClick={add}>
            Attach a workspace
          </Button>
        </div>
      ) : (
        <p className="faint">There are no shared workspaces yet; Workspaces makes them.</p>
      )}
    </div>
  );
}

function free(attached: Attachment[]): string {
  const names = new Set(attached.map(({ name }) => name));
  let n = 1;
  while (names.has(n === 1 ? "work" : `work-${n}`)) n += 1;
  return n === 1 ? "work" : `work-${n}`;
}

interface AttachmentRowProps {
  at: number;
  attachment: Attachment;
  workspaces: { workspaceId: string; name: string }[];
  onChange: (some: Attachment) => void;
  onRemove: () => void;
}

const THE_AGENTS = "the agent's";

function AttachmentRow({ at, attachment, workspaces, onChange, onRemove }: AttachmentRowProps) {
  const { name, workspaceId, sandbox } = attachment;
  const through = (chosen: string) => {
    const { sandbox: _, ...rest } = attachment;
    onChange(chosen === THE_AGENTS ? rest : { ...rest, sandbox: chosen || null });
  };
  return (
    <div className="attachment" role="group" aria-label={`Workspace ${at + 1}`}>
      <Field label="Known as">
        <input
          className="input mono"
          value={name}
          onChange={(event) => onChange({ ...attachment, name: event.target.value })}
        />
      </Field>
      <Field label="Workspace">
        <select
          className="input"
          value={workspaceId}
          onChange={(event) => onChange({ ...attachment, workspaceId: event.target.value })}
        >
          {!workspaces.some((each) => each.workspaceId === workspaceId) && (
            <option value={workspaceId}>{plain(workspaceId, 60)} (not there)</option>
          )}
          {workspaces.map((each) => (
            <option key={each.workspaceId} value={each.workspaceId}>
              {plain(each.name, 60)}
            </option>
          ))}
        </select>
      </Field>
      <SandboxChoice
        label="Through"
        value={sandbox === undefined ? THE_AGENTS : (sandbox ?? "")}
        first={{ value: THE_AGENTS, name: "The agent's sandbox" }}
        none="None: read-only"
        onChange={through}
      />
      <Button icon={Trash2} aria-label={`Detach ${plain(name, 40)}`} onClick={onRemove} />
    </div>
  );
}
