// The inbox of calls that wait for a yes, live, and what became of those before.

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
      subtitle="Calls of agents that wait for a person’s yes. What is approved runs once, as it is shown."
    >
      <nav className="tabs" aria-label="Which approvals">
        <Link
          to="/approvals"
          className={showsPast ? "" : "on"}
          aria-current={showsPast ? undefined : "page"}
        >
          Waiting {pending.data && <span className="badge">{pending.data.length}</span>}
        </Link>
        <Link
          to="/approvals?show=answered"
          className={showsPast ? "on" : ""}
          aria-current={showsPast ? "page" : undefined}
        >
          Answered
        </Link>
      </nav>
      <div className={id ? "two-panes framed chosen" : "two-panes framed"}>
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
      <EmptyState icon={ShieldCheck} title="Nothing answered yet">
        <p>Who said yes or no, when and why, and what came of it will be here.</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={ShieldCheck} title="Nothing waits">
      <p>
        An agent asks here before it writes or runs commands, where its sandbox says{" "}
        <code>ask</code> or <code>edit</code>. At a terminal, <code>carrel approvals</code> shows
        the same.
      </p>
    </EmptyState>
  );
}

const Hint = () => (
  <p className="faint">
    Choose one to see what it would do. <kbd>j</kbd> and <kbd>k</kbd> move, <kbd>Enter</kbd> opens.
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
