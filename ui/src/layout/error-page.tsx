import { Compass } from "lucide-react";
import { isRouteErrorResponse, useRouteError } from "react-router";
import { sentence } from "../api/problem";
import { Button, ButtonLink } from "../components/button";
import { Empty } from "../components/query-states";

/** What is shown where an address leads nowhere, or where a screen broke. */
export function Missing() {
  const error = useRouteError();
  const broke = error !== undefined && !isRouteErrorResponse(error);
  return (
    <Empty icon={Compass} title={broke ? "This screen broke" : "There is no such page"}>
      <p>{broke ? sentence(error) : "The address leads nowhere on this desk."}</p>
      <div className="row wrap">
        {broke && (
          <Button kind="primary" onClick={() => location.reload()}>
            Try again
          </Button>
        )}
        <ButtonLink to="/agents" reloadDocument={broke}>
          To the agents
        </ButtonLink>
      </div>
    </Empty>
  );
}
