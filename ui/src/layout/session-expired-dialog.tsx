// The session ended while a text was being written: one signs in over it, and nothing is lost.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { sessionQuery, signIn, waysQuery } from "../api/session";
import { Field } from "../components/field";
import { FormDialog } from "../components/form-dialog";

export function SignInAgain({ times }: { times: number }) {
  const queries = useQueryClient();
  const ways = useQuery(waysQuery);
  const [isOpen, setOpen] = useState(true);
  const [token, setToken] = useState("");
  const enter = useMutation({
    mutationFn: signIn,
    meta: { quiet: true },
    onSuccess: async (session) => {
      // A look at the session from before would be refused after this, and ask once more.
      await queries.cancelQueries({ queryKey: sessionQuery.queryKey });
      queries.setQueryData(sessionQuery.queryKey, session);
      void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    },
  });
  // Whoever closed it is asked again at the next refusal; whoever is typing goes on typing.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the refusals are what is waited for
  useEffect(() => setOpen(true), [times]);
  // Whoever signed in by another tab comes back to this one.
  useEffect(() => {
    const look = () => void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [queries]);
  if (!isOpen) return null;
  return (
    <FormDialog
      title="You are signed out"
      action="Sign in"
      busy={enter.isPending}
      error={enter.error}
      onSubmit={() => enter.mutate({ token: token.trim() })}
      onClose={() => setOpen(false)}
    >
      <p>Your session has ended. What you wrote is still here: sign in again, then save it.</p>
      {ways.data?.oidc && (
        <p>
          <a href={`${ways.data.oidc.start}?return=%2Fagents`} target="_blank" rel="noreferrer">
            Sign in with {ways.data.oidc.name} in another tab
          </a>
          , and come back to this one.
        </p>
      )}
      <Field label="Token">
        <input
          className="input mono"
          type="password"
          autoComplete="off"
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}
