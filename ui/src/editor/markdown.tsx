// Markdown as elements, never as markup: raw HTML in it is shown as text, links only to the web.

import { memo, useMemo } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { definitions, isOverfull, pieces } from "./pieces";

const plugins = [remarkGfm];

export default function Markdown({ text }: { text: string }) {
  const parts = useMemo(() => pieces(text), [text]);
  const links = useMemo(() => (parts.length > 1 ? definitions(text) : ""), [parts, text]);
  return (
    <div className="markdown">
      {parts.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a piece is where it is; what it says is compared
        <Piece key={at} text={part} links={links} />
      ))}
    </div>
  );
}

const Piece = memo(({ text, links }: { text: string; links: string }) => {
  if (isOverfull(text)) return <pre className="text">{text}</pre>;
  return (
    <div className="markdown-piece">
      <ReactMarkdown remarkPlugins={plugins} components={{ img: Picture, a: Anchor }}>
        {links ? `${text}\n\n${links}` : text}
      </ReactMarkdown>
    </div>
  );
});

const Picture = ({ alt, src }: { alt?: string; src?: string | Blob }) => (
  <span className="faint">[picture: {alt || String(src ?? "")}]</span>
);

const Anchor = ({ href, children }: { href?: string; children?: React.ReactNode }) => (
  <a href={href} rel="noopener noreferrer nofollow" target="_blank">
    {children}
  </a>
);
