// Markdown as elements, never as markup: raw HTML in it is shown as text, links only to the web.

import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";

const plugins = [remarkGfm];

export default function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={plugins} components={{ img: Picture, a: Anchor }}>
        {text}
      </ReactMarkdown>
    </div>
  );
}

const Picture = ({ alt, src }: { alt?: string; src?: string | Blob }) => (
  <span className="faint">[picture: {alt || String(src ?? "")}]</span>
);

const Anchor = ({ href, children }: { href?: string; children?: React.ReactNode }) => (
  <a href={href} rel="noopener noreferrer nofollow" target="_blank">
    {children}
  </a>
);
