import type { ReactNode } from "react";
import { useTitle } from "../../components/screen";

interface SettingsSectionProps {
  title: string;
  description: ReactNode;
  action?: ReactNode;
  children: ReactNode;
}

/** One tab of the settings. */
export function SettingsSection({ title, description, action, children }: SettingsSectionProps) {
  useTitle(title);
  return (
    <section className="stack" aria-labelledby="part">
      <header className="row wrap top">
        <div className="grow section-title">
          <h2 id="part">{title}</h2>
          <p className="soft">{description}</p>
        </div>
        {action}
      </header>
      {children}
    </section>
  );
}
