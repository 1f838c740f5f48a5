// What became of each file that could be in a prompt: where it comes from, how long, cut and why.

import { Link } from "react-router";
import type { Block } from "../../api/prompt";
import { escapeText } from "../../components/escape-text";
import { blockKey } from "./block-texts";
import { layerOf } from "./layer";

interface BlockTableProps {
  blocks: readonly Block[];
  label: string;
  /** Where the desk shows the file of a block. */
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
          <Row key={blockKey(block)} block={block} urlOf={urlOf(block)} />
        ))}
      </tbody>
    </table>
  );
}

const FATE_STYLES = { kept: null, cut: "badge update", "left out": "badge" } as const;

function Row({ block, urlOf }: { block: Block; urlOf: string | null }) {
  const { name, path, source, version, tokens, chars, kept, reason } = block;
  const layer = layerOf(source);
  const className = FATE_STYLES[kept];
  return (
    <tr className={kept === "left out" ? "left-out" : undefined}>
      <td>
        <div className="row wrap">
          <strong className="bidi">{escapeText(name, 80)}</strong>
          {className && <span className={className}>{kept}</span>}
        </div>
        <div className="faint bidi">
          {urlOf ? <Link to={urlOf}>{escapeText(path, 120)}</Link> : escapeText(path, 120)}
        </div>
        {reason && <div className="why">{escapeText(reason, 400)}</div>}
      </td>
      <td>
        {source || kept === "kept" ? (
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
