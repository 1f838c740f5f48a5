// What became of each file that could be in a prompt: where it comes from, how long, cut and why.

import { Link } from "react-router";
import type { Block } from "../../api/prompt";
import { plain } from "../../components/escape-text";
import { keyOf } from "./block-texts";
import { layerOf } from "./layer";

interface BlockTableProps {
  blocks: readonly Block[];
  label: string;
  /** Where the desk shows the file of a block. */
  to: (block: Block) => string | null;
}

export function BlockTable({ blocks, label, to }: BlockTableProps) {
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
          <Row key={keyOf(block)} block={block} to={to(block)} />
        ))}
      </tbody>
    </table>
  );
}

const KEPT = { kept: null, cut: "badge update", "left out": "badge" } as const;

function Row({ block, to }: { block: Block; to: string | null }) {
  const { name, path, source, version, tokens, chars, kept, reason } = block;
  const layer = layerOf(source);
  const look = KEPT[kept];
  return (
    <tr className={kept === "left out" ? "left-out" : undefined}>
      <td>
        <div className="row wrap">
          <strong className="bidi">{plain(name, 80)}</strong>
          {look && <span className={look}>{kept}</span>}
        </div>
        <div className="faint bidi">
          {to ? <Link to={to}>{plain(path, 120)}</Link> : plain(path, 120)}
        </div>
        {reason && <div className="why">{plain(reason, 400)}</div>}
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
