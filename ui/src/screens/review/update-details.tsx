import { useAuthors } from "../../api/authors";
import type { Pin } from "../../api/pins";
import { plain } from "../../components/escape-text";
import { Time } from "../../components/time";
import { TokenEffect } from "./token-change";

/** Who offers what is to be reviewed, when and why, and what it does to the prompt. */
export function Offer({ pin }: { pin: Pin }) {
  const authorOf = useAuthors();
  return (
    <dl className="offer-facts">
      <div>
        <dt>Changed by</dt>
        <dd className="bidi">{authorOf(pin.latestAuthor ?? "")}</dd>
      </div>
      <div>
        <dt>When</dt>
        <dd>
          <Time at={pin.latestAt} />
        </dd>
      </div>
      <div>
        <dt>Where</dt>
        <dd>{whereFrom(pin)}</dd>
      </div>
      <div>
        <dt>Effect on the prompt</dt>
        <dd>
          <TokenEffect before={pin.pinnedTokens} after={pin.latestTokens} />
        </dd>
      </div>
      <div className="whole">
        <dt>Why</dt>
        <dd className="bidi">
          {pin.latestReason ? (
            plain(pin.latestReason, 500)
          ) : (
            <span className="faint">No reason was given.</span>
          )}
        </dd>
      </div>
    </dl>
  );
}

function whereFrom({ latestSource, latestVersion }: Pin): string {
  if (!latestSource) return "—";
  const layer = latestSource === "template" ? "Template" : "Defaults";
  return latestVersion ? `${layer}, version ${latestVersion}` : layer;
}
