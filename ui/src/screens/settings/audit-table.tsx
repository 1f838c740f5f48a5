import { Link } from "react-router";
import { type AuditEntry, type AuditFilters, type AuditObject, objectUrl } from "../../api/audit";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";

const SHOWN_OBJECTS = 5;

interface Props {
  entries: AuditEntry[];
  setFilters: (patch: Partial<AuditFilters>) => void;
}

export function AuditTable({ entries, setFilters }: Props) {
  return (
    <div className="table-wrap">
      <table className="table wide-table" aria-label="Audit log">
        <thead>
          <tr>
            <th>Time</th>
            <th>Author</th>
            <th>Action</th>
            <th>Records</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id}>
              <td className="nowrap">
                <Time at={entry.at} />
              </td>
              <td>
                <button
                  type="button"
                  className="link bidi"
                  title={entry.by}
                  onClick={() => setFilters({ who: entry.by })}
                >
                  {escapeText(entry.byName ?? entry.by, 60)}
                </button>
                {entry.key && entry.key.id !== entry.by && (
                  <div className="faint bidi" title={entry.key.id}>
                    with key {escapeText(entry.key.name, 60)}
                  </div>
                )}
              </td>
              <td className="bidi">
                {escapeText(entry.why, 300)}
                {entry.action && !entry.why.startsWith(entry.action) && (
                  <div className="faint">{escapeText(entry.action, 60)}</div>
                )}
              </td>
              <td>
                <ObjectList objects={entry.objects} setFilters={setFilters} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Records with their names; a file replaces its agent, template or defaults. */
function ObjectList({
  objects,
  setFilters,
}: {
  objects: AuditObject[];
  setFilters: Props["setFilters"];
}) {
  const owners = new Set(objects.filter(({ path }) => path).map(({ type, id }) => `${type}/${id}`));
  const visible = objects.filter(({ path, type, id }) => path || !owners.has(`${type}/${id}`));
  return (
    <ul className="lines">
      {visible.slice(0, SHOWN_OBJECTS).map((object) => (
        <li key={`${object.type}/${object.id}/${object.path ?? ""}`}>
          <ObjectName object={object} />{" "}
          <button
            type="button"
            className="link faint"
            aria-label={`Only entries of ${object.type} ${object.name ?? object.id}`}
            onClick={() => setFilters({ object: `${object.type}/${object.id}` })}
          >
            {object.type}
          </button>
        </li>
      ))}
      {visible.length > SHOWN_OBJECTS && (
        <li className="faint">{visible.length - SHOWN_OBJECTS} more</li>
      )}
    </ul>
  );
}

function ObjectName({ object }: { object: AuditObject }) {
  const owner = object.type === "defaults" ? "Defaults" : (object.name ?? object.id);
  const text = escapeText(object.path ? `${owner}: ${object.path}` : owner, 80);
  const to = objectUrl(object);
  return to ? (
    <Link className="bidi" to={to} title={object.id}>
      {text}
    </Link>
  ) : (
    <code>{text}</code>
  );
}
