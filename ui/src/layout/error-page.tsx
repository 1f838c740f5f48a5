import { Compass } from "lucide-react";
import { isRouteErrorResponse, useRouteError } from "react-router";
import { toSentence } from "../api/problem";
import { Button, ButtonLink } from "../components/button";
import { EmptyState } from "../components/query-states";
import { useTitle } from "../components/screen";

/** Page for unknown URLs and for screens that crashed. */
export function ErrorPage() {
  const error = useRouteError();
  const isCrash = error != null && !isRouteErrorResponse(error);
  const title = isCrash ? "Something went wrong" : "Page not found";
  useTitle(title);
  return (
    <EmptyState icon={Compass} title={title}>
      <p>{isCrash ? toSentence(error) : "This page does not exist."}</p>
      <div className="row wrap">
        {isCrash && (
          <Button kind="primary" onClick={() => location.reload()}>
            Reload
          </Button>
        )}
        <ButtonLink to="/agents" reloadDocument={isCrash}>
          Go to agents
        </ButtonLink>
      </div>
    </EmptyState>
  );
}
