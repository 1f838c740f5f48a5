import { useOutletContext } from "react-router";
import type { FileScope } from "../../api/files";

/** The files of the template whose page surrounds the tab. */
export const useTemplateScope = (): FileScope => useOutletContext<FileScope>();
