// Settings of the account.

import { Outlet } from "react-router";
import { Screen, Tabs } from "../../components/screen";

const TABS = [
  { to: "/settings/account", name: "Account" },
  { to: "/settings/people", name: "People" },
  { to: "/settings/keys", name: "API keys" },
  { to: "/settings/policy", name: "Policy" },
  { to: "/settings/secrets", name: "Secrets" },
  { to: "/settings/webhooks", name: "Webhooks" },
  { to: "/settings/audit", name: "Audit log" },
];

export default function Settings() {
  return (
    <Screen title="Settings">
      <Tabs label="Settings" tabs={TABS} />
      <Outlet />
    </Screen>
  );
}
