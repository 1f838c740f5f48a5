// The door: by the one-time link of the terminal, by a token, or by the company's own sign-in.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, LogIn } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { toSentence } from "../../api/problem";
import { sessionQuery, signIn, signInMethodsQuery } from "../../api/session";
import { Button } from "../../components/button";
import { Field } from "../../components/field";
import { Loading } from "../../components/query-states";
import { useTitle } from "../../components/screen";

const ERRORS: Record<string, string> = {
  unknown: "Nobody here has the address that you signed in with. Ask an admin to add you.",
  denied: "The sign-in was called off.",
  expired: "The sign-in took too long. Please try again.",
  unavailable: "The company’s sign-in cannot be reached just now. Please try again.",
  not_offered: "This server has no company sign-in. A token opens it.",
  busy: "The server is busy. Please try again.",
};

/** Only a path on this site: never an address that somebody else put there. */
export function safeReturnPath(requested: string | null): string {
  return requested && /^\/(?![/\\])/.test(requested) ? requested : "/agents";
}

export default function SignIn() {
  useTitle("Sign in");
  const [params] = useSearchParams();
  const [token, setToken] = useState("");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const signInMethods = useQuery(signInMethodsQuery);
  const signInMutation = useMutation({
    mutationFn: signIn,
    meta: { skipErrorToast: true },
    onSuccess: (session) => {
      // Whoever was here before may have seen more than who comes now.
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "ways" });
      queries.setQueryData(sessionQuery.queryKey, session);
      void navigate(safeReturnPath(params.get("return")), { replace: true });
    },
  });
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get("code"));
  const attempted = useRef(false);
  useEffect(() => {
    if (!code || attempted.current) return;
    attempted.current = true;
    history.replaceState(null, "", "/sign-in");
    signInMutation.mutate({ code });
  }, [code, signInMutation]);
  const errorCode = params.get("error");
  if (code && !signInMutation.isError) return <Loading label="Signing in" />;
  return (
    <main className="door">
      <div className="card">
        <div className="stack tight">
          <h1 className="row">
            <img src="/icon.svg" alt="" width={28} height={28} /> Carrel
          </h1>
          <p className="soft">The desk from which you look after your agents.</p>
        </div>
        {errorCode && (
          <p className="notice bad" role="alert">
            {ERRORS[errorCode] ?? "The sign-in did not work. Please try again."}
          </p>
        )}
        {signInMutation.isError && (
          <p className="notice bad" role="alert">
            {toSentence(signInMutation.error)}
          </p>
        )}
        {signInMethods.data?.oidc && (
          <a
            className="button primary"
            href={`${signInMethods.data.oidc.start}?return=${encodeURIComponent(safeReturnPath(params.get("return")))}`}
          >
            <LogIn size={16} aria-hidden /> Sign in with {signInMethods.data.oidc.name}
          </a>
        )}
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            signInMutation.mutate({ token: token.trim() });
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
            kind={signInMethods.data?.oidc ? undefined : "primary"}
            icon={KeyRound}
            busy={signInMutation.isPending}
          >
            Sign in
          </Button>
        </form>
      </div>
    </main>
  );
}
