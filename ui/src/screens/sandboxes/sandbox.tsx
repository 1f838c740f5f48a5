// One sandbox: config, isolation and the agents that use it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { type AgentUse, agentRecordsQuery, sandboxUses } from "../../api/agent-records";
import { deleteSandbox, hasNetworkAccess, type Sandbox, sandboxQuery } from "../../api/sandboxes";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy-button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { PropertyList } from "../../components/property-list";
import { QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { DeleteWarning, UsedBy } from "../../components/used-by";
import { useSession } from "../../layout/session-context";
import { IsolationCard } from "./isolation-card";
import { PERMISSION_MODES, SandboxForm } from "./sandbox-form";

export default function SandboxPage() {
  const { id = "" } = useParams();
  const [isDeleting, setDeleting] = useState(false);
  const query = useQuery({ ...sandboxQuery(id), enabled: !isDeleting });
  return (
    <QueryResult query={query}>
      {(data) => <SandboxDetails sandbox={data} onDeleting={setDeleting} />}
    </QueryResult>
  );
}

interface SandboxDetailsProps {
  sandbox: Sandbox;
  /** Pauses queries for the sandbox while it is being deleted. */
  onDeleting: (isDeleting: boolean) => void;
}

function SandboxDetails({ sandbox, onDeleting }: SandboxDetailsProps) {
  const agents = useQuery(agentRecordsQuery);
  const admin = isAdmin(useSession());
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const uses = agents.data && sandboxUses(agents.data, sandbox.sandboxId);
  const close = () => setOpen(null);
  return (
    <Screen
      title={escapeText(sandbox.name, 120)}
      subtitle={
        <>
          <Link to="/sandboxes">Sandboxes</Link>
          {sandbox.description && (
            <span className="bidi"> · {escapeText(sandbox.description, 300)}</span>
          )}
        </>
      }
      actions={
        admin && (
          <>
            <Button icon={Pencil} onClick={() => setOpen("edit")}>
              Edit
            </Button>
            <Button icon={Trash2} kind="danger" onClick={() => setOpen("delete")}>
              Delete
            </Button>
          </>
        )
      }
    >
      <div className="cards">
        <ConfigCard sandbox={sandbox} />
        <div className="stack">
          <IsolationCard sandbox={sandbox} />
          <UsedBy
            uses={uses}
            emptyText="No agent uses this sandbox. Select it in an agent’s settings."
          />
        </div>
      </div>
      {open === "edit" && <SandboxForm sandbox={sandbox} onClose={close} />}
      {open === "delete" && (
        <DeleteDialog sandbox={sandbox} uses={uses ?? []} onClose={close} onDeleting={onDeleting} />
      )}
    </Screen>
  );
}

function ConfigCard({ sandbox }: { sandbox: Sandbox }) {
  const { config, sandboxId, createdAt, updatedAt } = sandbox;
  const limitText = (number: number | undefined, unit: string, defaultText: string) =>
    number === undefined ? (
      <span className="soft">{defaultText} (default)</span>
    ) : (
      `${number.toLocaleString("en")} ${unit}`
    );
  return (
    <section className="card" aria-labelledby="described">
      <header>
        <h2 id="described">Configuration</h2>
      </header>
      <div className="card-body">
        <PropertyList
          items={[
            ["ID", <CopyableId key="id" id={sandboxId} />],
            ["Provider", <code key="provider">{config.provider}</code>],
            [
              "Approval required for",
              `${PERMISSION_MODES[config.permissionMode]} (${config.permissionMode})`,
            ],
            ["Network", hasNetworkAccess(config) ? "Allowed" : "None"],
            ["Timeout", limitText(config.timeout, "seconds", "30 seconds")],
            ["Memory", limitText(config.memoryLimit, "MB", "1,024 MB")],
            ["Output", limitText(config.outputLimitBytes, "bytes", "65,536 bytes")],
            ["Runtimes", config.runtimes?.join(", ") ?? "all"],
            ["Persistent", <Persistence key="kept" config={config} />],
            ["Environment variables", <NameList key="names" values={config.envVars} />],
            ["Options", <NameList key="options" values={config.options} />],
            ["Created", <Time key="created" at={createdAt} />],
            ["Updated", <Time key="changed" at={updatedAt} />],
          ]}
        />
      </div>
    </section>
  );
}

export function CopyableId({ id }: { id: string }) {
  return (
    <span className="row">
      <code className="truncate">{id}</code>
      <CopyButton text={id} label="Copy ID" />
    </span>
  );
}

function Persistence({ config: { persistent, lifecycle } }: { config: Sandbox["config"] }) {
  if (!persistent) return <>No</>;
  const idleSeconds = lifecycle?.idleTimeoutSeconds ?? 900;
  const maxSeconds = lifecycle?.maxLifetimeSeconds;
  return (
    <>
      Yes, until idle for {idleSeconds.toLocaleString("en")} seconds
      {maxSeconds && ` or ${maxSeconds.toLocaleString("en")} seconds old`}
    </>
  );
}

function NameList({ values }: { values: Record<string, unknown> | undefined }) {
  const names = Object.keys(values ?? {});
  if (!names.length) return <span className="soft">none</span>;
  return (
    <span className="row wrap">
      {names.map((name) => (
        <code key={name} className="badge">
          {escapeText(name, 60)}
        </code>
      ))}
    </span>
  );
}

interface DeleteDialogProps {
  sandbox: Sandbox;
  uses: AgentUse[];
  onClose: () => void;
  onDeleting: (isDeleting: boolean) => void;
}

function DeleteDialog({ sandbox, uses, onClose, onDeleting }: DeleteDialogProps) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => deleteSandbox(sandbox.sandboxId),
    onMutate: () => onDeleting(true),
    onError: () => onDeleting(false),
    onSuccess: async () => {
      await navigate("/sandboxes");
      void queries.invalidateQueries({ queryKey: ["sandboxes"], exact: true });
      toast("Sandbox deleted");
    },
  });
  return (
    <Confirm
      title="Delete sandbox?"
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{escapeText(sandbox.name, 80)}</strong> and its running instances will be deleted.
      </p>
      <DeleteWarning uses={uses} />
    </Confirm>
  );
}
