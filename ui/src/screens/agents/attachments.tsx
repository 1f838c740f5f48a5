import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { sandboxOptionsQuery, workspaceOptionsQuery } from "../../api/select-options";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import type { Attachment } from "./config";

interface SandboxSelectProps {
  label: string;
  value: string;
  none: string;
  /** Option before the sandboxes. */
  first?: { value: string; name: string };
  onChange: (id: string) => void;
}

export function SandboxSelect({ label, value, none, first, onChange }: SandboxSelectProps) {
  const { data = [] } = useQuery(sandboxOptionsQuery);
  const isListed = data.some(({ sandboxId }) => sandboxId === value) || !value;
  return (
    <Field label={label}>
      <select className="input" value={value} onChange={(event) => onChange(event.target.value)}>
        {first && <option value={first.value}>{first.name}</option>}
        <option value="">{none}</option>
        {data.map(({ sandboxId, name }) => (
          <option key={sandboxId} value={sandboxId}>
            {escapeText(name, 60)}
          </option>
        ))}
        {!isListed && value !== first?.value && (
          <option value={value}>{escapeText(value, 60)} (deleted)</option>
        )}
      </select>
    </Field>
  );
}

interface AttachmentsProps {
  attached: Attachment[];
  onChange: (attached: Attachment[]) => void;
}

/** Shared workspaces attached to the agent; the first one is its default. */
export function Attachments({ attached, onChange }: AttachmentsProps) {
  const { data = [] } = useQuery(workspaceOptionsQuery);
  const replace = (index: number, attachment: Attachment) =>
    onChange(attached.map((other, n) => (n === index ? attachment : other)));
  const first = data[0];
  const add = () =>
    first &&
    onChange([...attached, { name: unusedName(attached), workspaceId: first.workspaceId }]);
  return (
    <div className="stack">
      {attached.map((attachment, index) => (
        <AttachmentRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is identified by its position
          key={index}
          index={index}
          attachment={attachment}
          workspaces={data}
          onChange={(attachment) => replace(index, attachment)}
          onRemove={() => onChange(attached.filter((_, n) => n !== index))}
        />
      ))}
      {first ? (
        <div>
          <Button small icon={Plus} onClick={add}>
            Attach workspace
          </Button>
        </div>
      ) : (
        <p className="faint">No shared workspaces yet. Create one under Workspaces.</p>
      )}
    </div>
  );
}

function unusedName(attached: Attachment[]): string {
  const names = new Set(attached.map(({ name }) => name));
  let n = 1;
  while (names.has(n === 1 ? "work" : `work-${n}`)) n += 1;
  return n === 1 ? "work" : `work-${n}`;
}

interface AttachmentRowProps {
  index: number;
  attachment: Attachment;
  workspaces: { workspaceId: string; name: string }[];
  onChange: (attachment: Attachment) => void;
  onRemove: () => void;
}

const AGENT_SANDBOX = "the agent's";

function AttachmentRow({ index, attachment, workspaces, onChange, onRemove }: AttachmentRowProps) {
  const { name, workspaceId, sandbox } = attachment;
  const setSandbox = (value: string) => {
    const { sandbox: _, ...rest } = attachment;
    onChange(value === AGENT_SANDBOX ? rest : { ...rest, sandbox: value || null });
  };
  return (
    <div className="attachment" role="group" aria-label={`Workspace ${index + 1}`}>
      <Field label="Name">
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
          {!workspaces.some((workspace) => workspace.workspaceId === workspaceId) && (
            <option value={workspaceId}>{escapeText(workspaceId, 60)} (deleted)</option>
          )}
          {workspaces.map((workspace) => (
            <option key={workspace.workspaceId} value={workspace.workspaceId}>
              {escapeText(workspace.name, 60)}
            </option>
          ))}
        </select>
      </Field>
      <SandboxSelect
        label="Sandbox"
        value={sandbox === undefined ? AGENT_SANDBOX : (sandbox ?? "")}
        first={{ value: AGENT_SANDBOX, name: "The agent's sandbox" }}
        none="None (read-only)"
        onChange={setSandbox}
      />
      <Button icon={Trash2} aria-label={`Detach ${escapeText(name, 40)}`} onClick={onRemove} />
    </div>
  );
}
