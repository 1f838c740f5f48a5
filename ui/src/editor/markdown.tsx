// Renders Markdown safely: raw HTML is shown as text, and links only lead to the web.

import { memo, useEffect, useMemo, useRef } from "react";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { isTooLong, linkDefinitions, type MarkdownChunk, splitMarkdown } from "./markdown-chunks";

const plugins = [remarkGfm];

export default function Markdown({ text }: { text: string }) {
  const previous = useRef<MarkdownChunk[]>([]);
  const chunks = useMemo(() => splitMarkdown(text, previous.current), [text]);
  useEffect(() => {
    previous.current = chunks;
  }, [chunks]);
  const links = useMemo(() => (chunks.length > 1 ? linkDefinitions(text) : ""), [chunks, text]);
  return (
    <div className="markdown">
      {chunks.map((chunk) => (
        <Chunk key={chunk.id} text={chunk.text} links={links} />
      ))}
    </div>
  );
}

const Chunk = memo(({ text, links }: { text: string; links: string }) => {
  if (isTooLong(text)) return <pre className="text">{text}</pre>;
  return (
    <div className="markdown-chunk">
      <ReactMarkdown remarkPlugins={plugins} components={{ img: ImagePlaceholder, a: Anchor }}>
        {links ? `${text}\n\n${links}` : text}
      </ReactMarkdown>
    </div>
  );
});

const ImagePlaceholder = ({ alt, src }: { alt?: string; src?: string | Blob }) => (
  <span className="faint">[image: {alt || String(src ?? "")}]</span>
);

const Anchor = ({ href, children }: { href?: string; children?: React.ReactNode }) =>
  href ? (
    <a href={href} rel="noopener noreferrer nofollow" target="_blank">
      {children}
    </a>
  ) : (
    <span>{children}</span>
  );
