import type { AuditFilters } from "../../api/audit";
import { PersonPicker } from "../../components/record-picker";

const ACTIONS = [
  "sign in",
  "refuse a sign-in",
  "use a key",
  "write files",
  "review a pinned file",
  "create an agent",
  "change an agent",
  "delete an agent",
  "create a template",
  "change a template",
  "delete a template",
  "add a person",
  "change a person",
  "remove a person",
];

const OBJECT_TYPES = {
  agent: "Agents",
  template: "Templates",
  defaults: "Defaults",
  person: "People",
  key: "Keys",
  policy: "Policy",
  secret: "Secrets",
  webhook: "Webhooks",
  sandbox: "Sandboxes",
  workspace: "Workspaces",
  approval: "Approvals",
  tenant: "Tenant",
};

interface Props {
  filters: AuditFilters;
  setFilters: (patch: Partial<AuditFilters>) => void;
}

export function AuditFilterBar({ filters, setFilters }: Props) {
  const { who, action, object, from, to } = filters;
  const isSingleRecord = object.includes("/");
  return (
    <search className="row wrap audit-filters">
      <PersonPicker
        label="Author"
        emptyLabel="Anyone"
        value={who}
        onChange={(who) => setFilters({ who })}
      />
      <label className="field">
        <span className="label">Action</span>
        <select
          className="input"
          value={action}
          onChange={(event) => setFilters({ action: event.target.value })}
        >
          <option value="">All actions</option>
          {!ACTIONS.includes(action) && action && <option value={action}>{action}</option>}
          {ACTIONS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span className="label">Records</span>
        <select
          className="input"
          value={object}
          onChange={(event) => setFilters({ object: event.target.value })}
        >
          <option value="">All records</option>
          {isSingleRecord && <option value={object}>{object}</option>}
          {Object.entries(OBJECT_TYPES).map(([type, name]) => (
            <option key={type} value={type}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span className="label">From</span>
        <input
          className="input"
          type="date"
          value={from}
          onChange={(event) => setFilters({ from: event.target.value })}
        />
      </label>
      <label className="field">
        <span className="label">To</span>
        <input
          className="input"
          type="date"
          value={to}
          onChange={(event) => setFilters({ to: event.target.value })}
        />
      </label>
    </search>
  );
}
