// The inbox of calls that wait for a yes, live, and what became of those before.

import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, ShieldCheck } from "lucide-react";
import { Link, useParams, useSearchParams } from "react-router";
import { type Approval, answeredQuery, approvalQuery, waitingQuery } from "../../api/approvals";
import { Empty, Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { ApprovalList } from "./approval-list";
import { ApprovalPage } from "./approval-page";

export default function Approvals() {
  const { id } = useParams();
  const [given] = useSearchParams();
  const past = given.get("show") === "answered";
  const waiting = useQuery(waitingQuery);
  const answered = useQuery({ ...answeredQuery, enabled: past });
  const search = past ? "?show=answered" : "";
  return (
    <Screen
      title="Approvals"
      under="Calls of agents that wait for a person’s yes. What is approved runs once, as it is shown."
    >
      <nav className="tabs" aria-label="Which approvals">
        <Link to="/approvals" className={past ? "" : "on"} aria-current={past ? undefined : "page"}>
          Waiting {waiting.data && <span className="badge">{waiting.data.length}</span>}
        </Link>
        <Link
          to="/approvals?show=answered"
          className={past ? "on" : ""}
          aria-current={past ? "page" : undefined}
        >
          Answered
        </Link>
      </nav>
      <div className={id ? "two-panes framed chosen" : "two-panes framed"}>
        <Shown query={past ? answered : waiting}>
          {(found) => <Listed approvals={found} past={past} search={search} />}
        </Shown>
        <div className="pane">{id ? <One id={id} search={search} key={id} /> : <Hint />}</div>
      </div>
    </Screen>
  );
}

interface ListedProps {
  approvals: Approval[];
  past: boolean;
  search: string;
}

function Listed({ approvals, past, search }: ListedProps) {
  if (approvals.length) return <ApprovalList approvals={approvals} search={search} />;
  if (past) {
    return (
      <Empty icon={ShieldCheck} title="Nothing answered yet">
        <p>Who said yes or no, when and why, and what came of it will be here.</p>
      </Empty>
    );
  }
  return (
    <Empty icon={ShieldCheck} title="Nothing waits">
      <p>
        An agent asks here before it writes or runs commands, where its sandbox says{" "}
        <code>ask</code> or <code>edit</code>. At a terminal, <code>carrel approvals</code> shows
        the same.
      </p>
    </Empty>
  );
}

const Hint = () => (
  <p className="faint">
    Choose one to see what it would do. <kbd>j</kbd> and <kbd>k</kbd> move, <kbd>Enter</kbd> opens.
  </p>
);

function One({ id, search }: { id: string; search: string }) {
  return (
    <>
      <Link className="only-small row" to={{ pathname: "/approvals", search }}>
        <ArrowLeft size={15} aria-hidden /> All approvals
      </Link>
      <Shown query={useQuery(approvalQuery(id))}>
        {(approval) => <ApprovalPage approval={approval} />}
      </Shown>
    </>
  );
}
