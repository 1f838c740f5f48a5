// The defaults: the files beneath every template and agent, and how they stand to those that Carrel
// comes with.

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
        <span className="crumbs">
          <Link to="/agent-templates">Templates</Link> / beneath every template and every agent
        </span>
      }
    >
      {data && <PackagedDefaults status={data} />}
      <FileBrowser scope={DEFAULTS} />
    </Screen>
  );
}
