import { useAuthorNames } from "../../api/authors";
import type { Pin } from "../../api/pins";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { TokenChange } from "./token-change";

/** Who offers what is to be reviewed, when and why, and what it does to the prompt. */
export function UpdateDetails({ pin }: { pin: Pin }) {
  const authorOf = useAuthorNames();
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
        <dd>{sourceLabel(pin)}</dd>
      </div>
      <div>
        <dt>Effect on the prompt</dt>
        <dd>
          <TokenChange before={pin.pinnedTokens} after={pin.latestTokens} />
        </dd>
      </div>
      <div className="whole">
        <dt>Why</dt>
        <dd className="bidi">
          {pin.latestReason ? (
            escapeText(pin.latestReason, 500)
          ) : (
            <span className="faint">No reason was given.</span>
          )}
        </dd>
      </div>
    </dl>
  );
}

function sourceLabel({ latestSource, latestVersion }: Pin): string {
  if (!latestSource) return "—";
  const layer = latestSource === "template" ? "Template" : "Defaults";
  return latestVersion ? `${layer}, version ${latestVersion}` : layer;
}
