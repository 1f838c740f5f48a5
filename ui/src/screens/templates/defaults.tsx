// The defaults: base files of every template and agent, and updates of the packaged ones.

import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "react-router";
import { DEFAULTS } from "../../api/files";
import { defaultsQuery } from "../../api/templates";
import { Screen, Tabs } from "../../components/screen";
import { PackagedDefaults } from "./packaged-defaults";

export default function Defaults() {
  const { data } = useQuery(defaultsQuery);
  return (
    <Screen
      title="Defaults"
      subtitle={
        <span className="breadcrumb">
          <Link to="/agent-templates">Templates</Link> / Base files of every template and agent
        </span>
      }
    >
      {data && <PackagedDefaults status={data} />}
      <Tabs
        label="Defaults"
        tabs={[
          { to: ".", name: "Files", end: true },
          { to: "updates", name: "Updates" },
        ]}
      />
      <Outlet context={DEFAULTS} />
    </Screen>
  );
}
