import type { ReactNode } from "react";

/** What is known of one thing: names and what they are. */
export function Facts({ of }: { of: [name: string, what: ReactNode][] }) {
  return (
    <dl className="facts">
      {of.map(([name, what]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}
