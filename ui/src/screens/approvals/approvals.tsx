// Pending and past approvals.

import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ShieldCheck } from "lucide-react";
import { Link, useParams, useSearchParams } from "react-router";
import {
  type Approval,
  approvalQuery,
  pastApprovalsQuery,
  pendingApprovalsQuery,
} from "../../api/approvals";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { ApprovalList } from "./approval-list";
import { ApprovalPage } from "./approval-page";

export default function Approvals() {
  const { id } = useParams();
  const [params] = useSearchParams();
  const showsPast = params.get("show") === "answered";
  const pending = useQuery(pendingApprovalsQuery);
  const past = useQuery({ ...pastApprovalsQuery, enabled: showsPast });
  const search = showsPast ? "?show=answered" : "";
  return (
    <Screen
      title="Approvals"
      subtitle="Tool calls that need a person’s approval. An approved call runs once, exactly as shown."
    >
      <nav className="tabs" aria-label="Approvals">
        <Link
          to="/approvals"
          className={showsPast ? "" : "active"}
          aria-current={showsPast ? undefined : "page"}
        >
          Pending {pending.data && <span className="badge">{pending.data.length}</span>}
        </Link>
        <Link
          to="/approvals?show=answered"
          className={showsPast ? "active" : ""}
          aria-current={showsPast ? "page" : undefined}
        >
          Decided
        </Link>
      </nav>
      <div className={id ? "two-panes framed selected" : "two-panes framed"}>
        <QueryResult query={showsPast ? past : pending}>
          {(approvals) => (
            <ApprovalPane approvals={approvals} showsPast={showsPast} search={search} />
          )}
        </QueryResult>
        <div className="pane">
          {id ? <SelectedApproval id={id} search={search} key={id} /> : <Hint />}
        </div>
      </div>
    </Screen>
  );
}

interface ApprovalPaneProps {
  approvals: Approval[];
  showsPast: boolean;
  search: string;
}

function ApprovalPane({ approvals, showsPast, search }: ApprovalPaneProps) {
  if (approvals.length) return <ApprovalList approvals={approvals} search={search} />;
  if (showsPast) {
    return (
      <EmptyState icon={ShieldCheck} title="No decided approvals">
        <p>Approved, denied and expired calls appear here.</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={ShieldCheck} title="No pending approvals">
      <p>
        Agents request approval before writes or commands if the sandbox’s permission mode is{" "}
        <code>ask</code> or <code>edit</code>. See also <code>carrel approvals</code>.
      </p>
    </EmptyState>
  );
}

const Hint = () => (
  <p className="faint">
    Select an approval. <kbd>j</kbd> and <kbd>k</kbd> move, <kbd>Enter</kbd> opens.
  </p>
);

function SelectedApproval({ id, search }: { id: string; search: string }) {
  return (
    <>
      <Link className="only-small row" to={{ pathname: "/approvals", search }}>
        <ArrowLeft size={15} aria-hidden /> All approvals
      </Link>
      <QueryResult query={useQuery(approvalQuery(id))}>
        {(approval) => <ApprovalPage approval={approval} />}
      </QueryResult>
    </>
  );
}
