import { useAuthorNames } from "../../api/authors";
import type { Pin } from "../../api/pins";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { TokenChange } from "./token-change";

/** Author, time, source, reason and prompt size of an update. */
export function UpdateDetails({ pin }: { pin: Pin }) {
  const authorOf = useAuthorNames();
  return (
    <dl className="update-details">
      <div>
        <dt>Changed by</dt>
        <dd className="bidi">{authorOf(pin.latestAuthor ?? "")}</dd>
      </div>
      <div>
        <dt>Changed</dt>
        <dd>
          <Time at={pin.latestAt} />
        </dd>
      </div>
      <div>
        <dt>Source</dt>
        <dd>{sourceLabel(pin)}</dd>
      </div>
      <div>
        <dt>Prompt size</dt>
        <dd>
          <TokenChange before={pin.servedTokens} after={pin.latestSha256 ? pin.latestTokens : 0} />
        </dd>
      </div>
      <div className="full-width">
        <dt>Reason</dt>
        <dd className="bidi">
          {pin.latestReason ? (
            escapeText(pin.latestReason, 500)
          ) : (
            <span className="faint">No reason given</span>
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
