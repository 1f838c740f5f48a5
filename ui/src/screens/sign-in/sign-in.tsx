// The door: by the one-time link of the terminal, by a token, or by the company's own sign-in.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, LogIn } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { sentence } from "../../api/problem";
import { sessionQuery, signIn, waysQuery } from "../../api/session";
import { Button } from "../../components/button";
import { Field } from "../../components/field";
import { Loading } from "../../components/query-states";
import { useTitle } from "../../components/screen";

const WHY: Record<string, string> = {
  unknown: "Nobody here has the address that you signed in with. Ask an admin to add you.",
  denied: "The sign-in was called off.",
  expired: "The sign-in took too long. Please try again.",
  unavailable: "The company’s sign-in cannot be reached just now. Please try again.",
  not_offered: "This server has no company sign-in. A token opens it.",
  busy: "The server is busy. Please try again.",
};

/** Only a path on this site: never an address that somebody else put there. */
export function wayBack(asked: string | null): string {
  return asked && /^\/(?![/\\])/.test(asked) ? asked : "/agents";
}

export default function SignIn() {
  useTitle("Sign in");
  const [given] = useSearchParams();
  const [token, setToken] = useState("");
  const queries = useQueryClient();
  const go = useNavigate();
  const ways = useQuery(waysQuery);
  const enter = useMutation({
    mutationFn: signIn,
    meta: { quiet: true },
    onSuccess: (session) => {
      // Whoever was here before may have seen more than who comes now.
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "ways" });
      queries.setQueryData(sessionQuery.queryKey, session);
      void go(wayBack(given.get("return")), { replace: true });
    },
  });
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get("code"));
  const tried = useRef(false);
  useEffect(() => {
    if (!code || tried.current) return;
    tried.current = true;
    history.replaceState(null, "", "/sign-in");
    enter.mutate({ code });
  }, [code, enter]);
  const why = given.get("error");
  if (code && !enter.isError) return <Loading what="Signing in" />;
  return (
    <main className="door">
      <div className="card">
        <div className="stack tight">
          <h1 className="row">
            <img src="/icon.svg" alt="" width={28} height={28} /> Carrel
          </h1>
          <p className="soft">The desk from which you look after your agents.</p>
        </div>
        {why && (
          <p className="notice bad" role="alert">
            {WHY[why] ?? "The sign-in did not work. Please try again."}
          </p>
        )}
        {enter.isError && (
          <p className="notice bad" role="alert">
            {sentence(enter.error)}
          </p>
        )}
        {ways.data?.oidc && (
          <a
            className="button primary"
            href={`${ways.data.oidc.start}?return=${encodeURIComponent(wayBack(given.get("return")))}`}
          >
            <LogIn size={16} aria-hidden /> Sign in with {ways.data.oidc.name}
          </a>
        )}
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            enter.mutate({ token: token.trim() });
          }}
        >
          <Field
            label="Token"
            hint={
              <>
                <code>carrel serve</code> prints a sign-in link and, the first time, the owner’s
                token.
              </>
            }
          >
            <input
              className="input mono"
              type="password"
              autoComplete="off"
              required
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          </Field>
          <Button
            type="submit"
            kind={ways.data?.oidc ? undefined : "primary"}
            icon={KeyRound}
            busy={enter.isPending}
          >
            Sign in
          </Button>
        </form>
      </div>
    </main>
  );
}
