// Markdown as elements, never as markup: raw HTML in it is shown as text, links only to the web.

import { memo, useEffect, useMemo, useRef } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { definitions, isOverfull, type Piece, pieces } from "./markdown-chunks";

const plugins = [remarkGfm];

export default function Markdown({ text }: { text: string }) {
  const before = useRef<Piece[]>([]);
  const parts = useMemo(() => pieces(text, before.current), [text]);
  useEffect(() => {
    before.current = parts;
  }, [parts]);
  const links = useMemo(() => (parts.length > 1 ? definitions(text) : ""), [parts, text]);
  return (
    <div className="markdown">
      {parts.map((part) => (
        <Rendered key={part.id} text={part.text} links={links} />
      ))}
    </div>
  );
}

const Rendered = memo(({ text, links }: { text: string; links: string }) => {
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

const Anchor = ({ href, children }: { href?: string; children?: React.ReactNode }) =>
  href ? (
    <a href={href} rel="noopener noreferrer nofollow" target="_blank">
      {children}
    </a>
  ) : (
    <span>{children}</span>
  );
