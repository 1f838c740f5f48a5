import { useQuery } from "@tanstack/react-query";
import { ShieldAlert, ShieldCheck } from "lucide-react";
import { isolationTierQuery, type Sandbox } from "../../api/sandboxes";
import { PropertyList } from "../../components/property-list";
import { QueryResult } from "../../components/query-states";
import { isolationTierOf } from "./isolation-tier";

/** What keeps this sandbox's commands apart: on this server, or on another's machines. */
export function IsolationCard({ sandbox }: { sandbox: Sandbox }) {
  const tier = useQuery(isolationTierQuery);
  const { provider } = sandbox.config;
  return (
    <section className="card" aria-labelledby="tier">
      <header>
        <h2 id="tier">What keeps commands apart</h2>
      </header>
      <div className="inside stack">
        {provider === "local" ? (
          <QueryResult query={tier}>{(name) => <IsolationDetails tier={name} />}</QueryResult>
        ) : (
          <p className="soft">
            Each command gets a machine of the provider <code>{provider}</code>, which is gone
            before the result is told. Whoever runs this server has to have set it up; until then
            commands are refused.
          </p>
        )}
      </div>
    </section>
  );
}

function IsolationDetails({ tier }: { tier: string }) {
  const { name, summary: says, isIsolated: strong, limits: enforces } = isolationTierOf(tier);
  const Icon = strong ? ShieldCheck : ShieldAlert;
  return (
    <>
      <div className="row top">
        <span className={strong ? "badge good" : "badge update"}>
          <Icon size={13} aria-hidden /> {name}
        </span>
        <p className="soft">{says}</p>
      </div>
      <PropertyList items={enforces} />
    </>
  );
}
