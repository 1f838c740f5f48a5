// Blocks of a prompt: source layer, tokens, and why a block was cut or left out.

import { Link } from "react-router";
import type { Block } from "../../api/prompt";
import { escapeText } from "../../components/escape-text";
import { blockKey } from "./block-texts";
import { layerOf } from "./layer";

interface BlockTableProps {
  blocks: readonly Block[];
  label: string;
  /** Console URL of a block's file. */
  urlOf: (block: Block) => string | null;
}

export function BlockTable({ blocks, label, urlOf }: BlockTableProps) {
  return (
    <table className="table block-table" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">Block</th>
          <th scope="col">Layer</th>
          <th scope="col" className="number">
            Tokens
          </th>
        </tr>
      </thead>
      <tbody>
        {blocks.map((block) => (
          <Row key={blockKey(block)} block={block} url={urlOf(block)} />
        ))}
      </tbody>
    </table>
  );
}

const STATUS_STYLES = { kept: null, cut: "badge update", "left out": "badge" } as const;

function Row({ block, url }: { block: Block; url: string | null }) {
  const { name, path, source, version, tokens, chars, kept: status, reason } = block;
  const layer = layerOf(source);
  const className = STATUS_STYLES[status];
  return (
    <tr className={status === "left out" ? "omitted" : undefined}>
      <td>
        <div className="row wrap">
          <strong className="bidi">{escapeText(name, 80)}</strong>
          {className && <span className={className}>{status}</span>}
        </div>
        <div className="faint bidi">
          {url ? <Link to={url}>{escapeText(path, 120)}</Link> : escapeText(path, 120)}
        </div>
        {reason && <div className="reason">{escapeText(reason, 400)}</div>}
      </td>
      <td>
        {source || status === "kept" ? (
          <>
            <span className="row">
              <span className={`swatch layer-${layer.kind}`} aria-hidden />
              {layer.name}
            </span>
            {version !== null && (
              <div className="faint">
                v{version}
                {layer.isPinned && ", pinned"}
              </div>
            )}
          </>
        ) : (
          <span className="faint">—</span>
        )}
      </td>
      <td className="number" title={`${chars.toLocaleString("en")} characters`}>
        {tokens.toLocaleString("en")}
      </td>
    </tr>
  );
}
