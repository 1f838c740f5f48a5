import { useQuery } from "@tanstack/react-query";
import { ShieldAlert, ShieldCheck } from "lucide-react";
import { type Sandbox, tierQuery } from "../../api/sandboxes";
import { Facts } from "../../components/property-list";
import { Shown } from "../../components/query-states";
import { tierOf } from "./isolation-tier";

/** What keeps this sandbox's commands apart: on this server, or on another's machines. */
export function TierCard({ sandbox }: { sandbox: Sandbox }) {
  const tier = useQuery(tierQuery);
  const { provider } = sandbox.config;
  return (
    <section className="card" aria-labelledby="tier">
      <header>
        <h2 id="tier">What keeps commands apart</h2>
      </header>
      <div className="inside stack">
        {provider === "local" ? (
          <Shown query={tier}>{(found) => <Here tier={found} />}</Shown>
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

function Here({ tier }: { tier: string }) {
  const { name, says, strong, enforces } = tierOf(tier);
  const Icon = strong ? ShieldCheck : ShieldAlert;
  return (
    <>
      <div className="row top">
        <span className={strong ? "badge good" : "badge update"}>
          <Icon size={13} aria-hidden /> {name}
        </span>
        <p className="soft">{says}</p>
      </div>
      <Facts of={enforces} />
    </>
  );
}
