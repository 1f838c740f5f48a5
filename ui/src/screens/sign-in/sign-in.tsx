// Sign-in by one-time link, token or OpenID Connect.

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
  unknown: "No account has this email address. Ask an admin to add you.",
  denied: "Sign-in was cancelled.",
  expired: "Sign-in timed out. Try again.",
  unavailable: "The identity provider is not reachable. Try again.",
  not_offered: "Single sign-on is not configured. Use a token.",
  busy: "The server is busy. Try again.",
};

/** A return path on this site; never a foreign URL. */
export function safeReturnPath(requested: string | null): string {
  return requested && /^\/(?![/\\])/.test(requested) ? requested : "/overview";
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
      // Drop cached data of the previous user.
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
    <main className="sign-in">
      <div className="card">
        <div className="stack tight">
          <h1 className="row">
            <img src="/icon.svg" alt="" width={28} height={28} /> Carrel
          </h1>
          <p className="soft">Admin console</p>
        </div>
        {errorCode && (
          <p className="notice bad" role="alert">
            {ERRORS[errorCode] ?? "Sign-in failed. Try again."}
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
                <code>carrel serve</code> prints a sign-in link and, on first start, the owner’s
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
