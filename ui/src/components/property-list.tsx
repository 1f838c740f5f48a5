import type { ReactNode } from "react";

/** A list of names and values. */
export function PropertyList({ items }: { items: [name: string, value: ReactNode][] }) {
  return (
    <dl className="property-list">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
