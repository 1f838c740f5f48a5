// The account's own affairs, a tab each.

import { Outlet } from "react-router";
import { Screen, Tabs } from "../../components/screen";

const TABS = [
  { to: "/settings/people", name: "People" },
  { to: "/settings/keys", name: "Keys" },
  { to: "/settings/policy", name: "Policy" },
  { to: "/settings/secrets", name: "Secrets" },
  { to: "/settings/webhooks", name: "Webhooks" },
  { to: "/settings/audit", name: "Audit" },
];

export default function Settings() {
  return (
    <Screen title="Settings">
      <Tabs label="Settings" tabs={TABS} />
      <Outlet />
    </Screen>
  );
}
