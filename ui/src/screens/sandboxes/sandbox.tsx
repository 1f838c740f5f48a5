// One sandbox: how it is described, what this server can hold it to, and who runs commands in it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { agentRecordsQuery, type Use, usersOfSandbox } from "../../api/agent-records";
import { deleteSandbox, reachesNetwork, type Sandbox, sandboxQuery } from "../../api/sandboxes";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy-button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Facts } from "../../components/property-list";
import { Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { Missed, UsedBy } from "../../components/used-by";
import { useSession } from "../../layout/session-context";
import { TierCard } from "./isolation-card";
import { MODES, SandboxForm } from "./sandbox-form";

export default function SandboxPage() {
  const { id = "" } = useParams();
  const [isGoing, setGoing] = useState(false);
  const found = useQuery({ ...sandboxQuery(id), enabled: !isGoing });
  return <Shown query={found}>{(data) => <Page sandbox={data} onGoing={setGoing} />}</Shown>;
}

interface PageProps {
  sandbox: Sandbox;
  /** It is being deleted: nothing more is asked about it. */
  onGoing: (isGoing: boolean) => void;
}

function Page({ sandbox, onGoing }: PageProps) {
  const agents = useQuery(agentRecordsQuery);
  const able = isAdmin(useSession());
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const uses = agents.data && usersOfSandbox(agents.data, sandbox.sandboxId);
  const close = () => setOpen(null);
  return (
    <Screen
      title={plain(sandbox.name, 120)}
      under={
        <>
          <Link to="/sandboxes">Sandboxes</Link>
          {sandbox.description && (
            <span className="bidi"> · {plain(sandbox.description, 300)}</span>
          )}
        </>
      }
      actions={
        able && (
          <>
            <Button icon={Pencil} onClick={() => setOpen("edit")}>
              Change
            </Button>
            <Button icon={Trash2} kind="danger" onClick={() => setOpen("delete")}>
              Delete
            </Button>
          </>
        )
      }
    >
      <div className="cards">
        <Described sandbox={sandbox} />
        <div className="stack">
          <TierCard sandbox={sandbox} />
          <UsedBy
            uses={uses}
            teach="No agent runs commands here yet. Name it in an agent’s settings, for all of its workspaces or for one."
          />
        </div>
      </div>
      {open === "edit" && <SandboxForm sandbox={sandbox} onClose={close} />}
      {open === "delete" && (
        <Deleting sandbox={sandbox} uses={uses ?? []} onClose={close} onGoing={onGoing} />
      )}
    </Screen>
  );
}

function Described({ sandbox }: { sandbox: Sandbox }) {
  const { config, sandboxId, createdAt, updatedAt } = sandbox;
  const usual = (number: number | undefined, unit: string, otherwise: string) =>
    number === undefined ? (
      <span className="soft">{otherwise} (usual)</span>
    ) : (
      `${number.toLocaleString("en")} ${unit}`
    );
  return (
    <section className="card" aria-labelledby="described">
      <header>
        <h2 id="described">What it is</h2>
      </header>
      <div className="inside">
        <Facts
          of={[
            ["Id", <Id key="id" id={sandboxId} />],
            ["Provider", <code key="provider">{config.provider}</code>],
            ["A person is asked", `${MODES[config.permissionMode]} (${config.permissionMode})`],
            ["Network", reachesNetwork(config) ? "Commands reach it" : "None"],
            ["Time", usual(config.timeout, "seconds", "30 seconds")],
            ["Memory", usual(config.memoryLimit, "MB", "1,024 MB")],
            ["Output", usual(config.outputLimitBytes, "bytes", "65,536 bytes")],
            ["Runtimes", config.runtimes?.join(", ") ?? "all"],
            ["Kept between commands", <Kept key="kept" config={config} />],
            ["Variables", <Names key="names" of={config.envVars} />],
            ["Options", <Names key="options" of={config.options} />],
            ["Created", <Time key="created" at={createdAt} />],
            ["Changed", <Time key="changed" at={updatedAt} />],
          ]}
        />
      </div>
    </section>
  );
}

export function Id({ id }: { id: string }) {
  return (
    <span className="row">
      <code className="cut">{id}</code>
      <CopyButton text={id} label="Copy the id" />
    </span>
  );
}

function Kept({ config: { persistent, lifecycle } }: { config: Sandbox["config"] }) {
  if (!persistent) return <>No; every command starts afresh, and none runs in the background</>;
  const idle = lifecycle?.idleTimeoutSeconds ?? 900;
  const most = lifecycle?.maxLifetimeSeconds;
  return (
    <>
      Yes, with background jobs, until idle for {idle.toLocaleString("en")} seconds
      {most && ` or ${most.toLocaleString("en")} seconds old`}
    </>
  );
}

function Names({ of }: { of: Record<string, unknown> | undefined }) {
  const names = Object.keys(of ?? {});
  if (!names.length) return <span className="soft">none</span>;
  return (
    <span className="row wrap">
      {names.map((name) => (
        <code key={name} className="badge">
          {plain(name, 60)}
        </code>
      ))}
    </span>
  );
}

interface DeletingProps {
  sandbox: Sandbox;
  uses: Use[];
  onClose: () => void;
  onGoing: (isGoing: boolean) => void;
}

function Deleting({ sandbox, uses, onClose, onGoing }: DeletingProps) {
  const queries = useQueryClient();
  const go = useNavigate();
  const gone = useMutation({
    mutationFn: () => deleteSandbox(sandbox.sandboxId),
    onMutate: () => onGoing(true),
    onError: () => onGoing(false),
    onSuccess: async () => {
      await go("/sandboxes");
      void queries.invalidateQueries({ queryKey: ["sandboxes"], exact: true });
      toast("The sandbox is deleted.");
    },
  });
  return (
    <Confirm
      title="Delete the sandbox?"
      action="Delete"
      danger
      busy={gone.isPending}
      onConfirm={() => gone.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{plain(sandbox.name, 80)}</strong> and what it keeps running will be gone.
      </p>
      <Missed uses={uses} what="it" />
    </Confirm>
  );
}
