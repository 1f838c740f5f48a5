// Files, memories and what was said, found by words.

import { useQuery } from "@tanstack/react-query";
import { Brain, FileText, type LucideIcon, MessagesSquare, SearchX } from "lucide-react";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { Link, useNavigation, useSearchParams } from "react-router";
import { type Hit, placeOf, searchQuery } from "../../api/search";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { Empty, Loading, Refused } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";

const PAUSE = 300;
const KINDS: { kind: Hit["kind"]; name: string; icon: LucideIcon }[] = [
  { kind: "file", name: "Files", icon: FileText },
  { kind: "memory", name: "Memories", icon: Brain },
  { kind: "session", name: "Sessions", icon: MessagesSquare },
];

export default function SearchScreen() {
  const [text, setText] = useAddressed();
  const asked = useDeferredValue(text).trim();
  const { data, error, isFetching, refetch } = useQuery(searchQuery(asked, 50));
  const hits = asked.length > 1 ? (data?.items ?? []) : [];
  return (
    <Screen title="Search">
      <SearchField
        label="Words in files, memories and sessions"
        value={text}
        maxLength={200}
        onChange={setText}
      />
      {error && <Refused error={error} again={() => void refetch()} />}
      <div role="status" className="visually-hidden">
        {isFetching ? "Looking" : `${hits.length} found`}
      </div>
      {KINDS.map((kind) => (
        <Found key={kind.kind} {...kind} hits={hits.filter((hit) => hit.kind === kind.kind)} />
      ))}
      {hits.length > 0 && data?.complete === false && (
        <p className="faint">There is more than one question looks at: add a word.</p>
      )}
      {hits.length === 0 && isFetching && <Loading what="Looking" />}
      {hits.length === 0 && !isFetching && !error && <NotFound asked={asked} />}
    </Screen>
  );
}

/** What is typed; the address follows after a moment. */
function useAddressed(): [string, (text: string) => void] {
  const [params, setParams] = useSearchParams();
  const said = params.get("q") ?? "";
  const [text, setText] = useState(said);
  const ours = useRef(said);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (said !== ours.current) setText(said);
    ours.current = said;
  }, [said]);
  const leaving = useNavigation().state !== "idle";
  useEffect(() => {
    if (leaving) clearTimeout(timer.current);
  }, [leaving]);
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      ours.current = next;
      setParams(next ? { q: next } : {}, { replace: true });
    }, PAUSE);
  };
  return [text, type];
}

function Found({ name, icon: Icon, hits }: (typeof KINDS)[number] & { hits: Hit[] }) {
  if (hits.length === 0) return null;
  return (
    <section className="card">
      <header>
        <Icon size={16} aria-hidden />
        <h2 className="grow">{name}</h2>
        <span className="badge">{hits.length}</span>
      </header>
      <ul className="search-hits">
        {hits.map((hit, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same place may be found twice
          <li key={`${placeOf(hit)} ${at}`}>
            <Link to={placeOf(hit)}>
              <span className="row">
                <strong className="cut bidi">{plain(hit.title, 120)}</strong>
                <span className="badge">{hit.scope}</span>
                <span className="faint end">
                  <Time at={hit.at} />
                </span>
              </span>
              <span className="snippet bidi">{plain(hit.snippet, 400)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function NotFound({ asked }: { asked: string }) {
  if (asked.length > 1) {
    return (
      <Empty icon={SearchX} title="Nothing has these words">
        <p>Every word has to be there, or begin so. Letter case and accents make no difference.</p>
      </Empty>
    );
  }
  return (
    <Empty icon={FileText} title="Find anything that was written">
      <p>
        Files of agents, templates, the defaults and shared workspaces; what agents remember; what
        was said in sessions. Type two letters or more.
      </p>
    </Empty>
  );
}
