// Files tab of a template.

import { FileBrowser } from "../files/file-browser";
import { useTemplateScope } from "./template-context";

export default function TemplateFiles() {
  return <FileBrowser scope={useTemplateScope()} />;
}
