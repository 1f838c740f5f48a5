import type { ReactNode } from "react";
import { useTitle } from "../../components/screen";

interface SettingsSectionProps {
  title: string;
  description: ReactNode;
  action?: ReactNode;
  children: ReactNode;
}

/** One tab of the settings: what it is about, what can be done, the rest. */
export function SettingsSection({ title, description, action, children }: SettingsSectionProps) {
  useTitle(title);
  return (
    <section className="stack" aria-labelledby="part">
      <header className="row wrap top">
        <div className="grow part-title">
          <h2 id="part">{title}</h2>
          <p className="soft">{description}</p>
        </div>
        {action}
      </header>
      {children}
    </section>
  );
}
