// Asks to sign in again when the session ends while there are unsaved drafts.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { sessionQuery, signIn, signInMethodsQuery } from "../api/session";
import { Field } from "../components/field";
import { FormDialog } from "../components/form-dialog";

export function SessionExpiredDialog({ refusalCount }: { refusalCount: number }) {
  const queries = useQueryClient();
  const signInMethods = useQuery(signInMethodsQuery);
  const [isOpen, setOpen] = useState(true);
  const [token, setToken] = useState("");
  const signInMutation = useMutation({
    mutationFn: signIn,
    meta: { skipErrorToast: true },
    onSuccess: async (session) => {
      // A session request from before would fail after this and reopen the dialog.
      await queries.cancelQueries({ queryKey: sessionQuery.queryKey });
      queries.setQueryData(sessionQuery.queryKey, session);
      void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    },
  });
  // Reopens a closed dialog at the next refusal; an open one keeps its input.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each refusal reopens the dialog
  useEffect(() => setOpen(true), [refusalCount]);
  // Detects a sign-in in another tab.
  useEffect(() => {
    const refetchSession = () =>
      void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
    addEventListener("focus", refetchSession);
    return () => removeEventListener("focus", refetchSession);
  }, [queries]);
  if (!isOpen) return null;
  return (
    <FormDialog
      title="Session expired"
      action="Sign in"
      busy={signInMutation.isPending}
      error={signInMutation.error}
      onSubmit={() => signInMutation.mutate({ token: token.trim() })}
      onClose={() => setOpen(false)}
      unguarded
    >
      <p>Your unsaved changes are still here. Sign in again to save them.</p>
      {signInMethods.data?.oidc && (
        <p>
          <a
            href={`${signInMethods.data.oidc.start}?return=%2Fagents`}
            target="_blank"
            rel="noreferrer"
          >
            Sign in with {signInMethods.data.oidc.name} in another tab
          </a>
          , then return to this one.
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
