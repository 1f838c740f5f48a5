// The files of a shared workspace: a list, and one of them to read.

import { useQuery } from "@tanstack/react-query";
import { FileText, FolderOpen } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import { addressOf, fileQuery, filesQuery, type Place } from "../../api/places";
import { plain } from "../../parts/hostile";
import { InertText } from "../../parts/inert-text";
import { Empty, Shown } from "../../parts/states";
import { Time } from "../../parts/time";

export function WorkspaceFiles({ id }: { id: string }) {
  const place: Place = { kind: "workspace", id };
  const [given] = useSearchParams();
  const path = given.get("file");
  const files = useQuery(filesQuery(place));
  return (
    <section className="card" aria-labelledby="files">
      <header>
        <h2 id="files">Files</h2>
      </header>
      <Shown query={files}>
        {(found) =>
          found.length ? (
            <div className="two-panes">
              <ul className="rows" aria-label="Files">
                {found.map((file) => (
                  <li key={file.path}>
                    <Link
                      className={file.path === path ? "on" : ""}
                      to={addressOf(place, file.path)}
                      aria-current={file.path === path || undefined}
                    >
                      <FileText size={15} aria-hidden />
                      <span className="grow cut bidi">{plain(file.path)}</span>
                      <span className="faint">
                        <Time at={file.updatedAt} />
                      </span>
                    </Link>
                  </li>
                ))}
              </ul>
              <div className="pane">
                {path ? (
                  <Read place={place} path={path} />
                ) : (
                  <p className="faint">Choose a file to read it.</p>
                )}
              </div>
            </div>
          ) : (
            <Empty icon={FolderOpen} title="No files yet">
              <p>
                What agents write here appears by itself. You can put one with{" "}
                <code>PUT /v1/workspaces/{id}/files/NAME.md</code>.
              </p>
            </Empty>
          )
        }
      </Shown>
    </section>
  );
}

function Read({ place, path }: { place: Place; path: string }) {
  return (
    <Shown query={useQuery(fileQuery(place, path))}>
      {(file) => (
        <div className="stack tight">
          <h3 className="bidi">{plain(path)}</h3>
          <InertText text={file.content ?? ""} label={`Text of ${plain(path, 80)}`} />
        </div>
      )}
    </Shown>
  );
}
