import { useQuery } from "@tanstack/react-query";
import { ShieldAlert, ShieldCheck } from "lucide-react";
import { isolationTierQuery, type Sandbox } from "../../api/sandboxes";
import { PropertyList } from "../../components/property-list";
import { QueryResult } from "../../components/query-states";
import { isolationTierOf } from "./isolation-tier";

/** Isolation of a sandbox's commands. */
export function IsolationCard({ sandbox }: { sandbox: Sandbox }) {
  const tier = useQuery(isolationTierQuery);
  const { provider } = sandbox.config;
  return (
    <section className="card" aria-labelledby="tier">
      <header>
        <h2 id="tier">Isolation</h2>
      </header>
      <div className="card-body stack">
        {provider === "local" ? (
          <QueryResult query={tier}>{(name) => <IsolationDetails tier={name} />}</QueryResult>
        ) : (
          <p className="soft">
            Each command runs on its own machine of the provider <code>{provider}</code>, which must
            be configured on this server. Otherwise commands are refused.
          </p>
        )}
      </div>
    </section>
  );
}

function IsolationDetails({ tier }: { tier: string }) {
  const { name, summary, isIsolated, limits } = isolationTierOf(tier);
  const Icon = isIsolated ? ShieldCheck : ShieldAlert;
  return (
    <>
      <div className="row top">
        <span className={isIsolated ? "badge good" : "badge update"}>
          <Icon size={13} aria-hidden /> {name}
        </span>
        <p className="soft">{summary}</p>
      </div>
      <PropertyList items={limits} />
    </>
  );
}
