// The defaults: base files of every template and agent, and updates of the packaged ones.

import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { DEFAULTS } from "../../api/files";
import { defaultsQuery } from "../../api/templates";
import { Screen } from "../../components/screen";
import { FileBrowser } from "../files/file-browser";
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
      <FileBrowser scope={DEFAULTS} />
    </Screen>
  );
}
