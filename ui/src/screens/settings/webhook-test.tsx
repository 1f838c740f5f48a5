// Sends a test event to a webhook, and shows the answer.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { AlertTriangle, CircleCheck } from "lucide-react";
import { useEffect, useRef } from "react";
import { toSentence } from "../../api/problem";
import { firstAttemptQuery, sendTestEvent } from "../../api/webhooks";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { FormError } from "../../components/form-dialog";

interface WebhookTestProps {
  id: string;
  onClose: () => void;
}

export function WebhookTestDialog({ id, onClose }: WebhookTestProps) {
  const queries = useQueryClient();
  const { mutate, data, error } = useMutation({
    mutationFn: () => sendTestEvent(id),
    meta: { skipErrorToast: true },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["webhooks", id, "deliveries"] }),
  });
  // Once, although development renders mount twice.
  const isSent = useRef(false);
  useEffect(() => {
    if (isSent.current) return;
    isSent.current = true;
    mutate();
  }, [mutate]);
  const footer = <Button onClick={onClose}>Close</Button>;
  return (
    <Dialog title="Test event" onClose={onClose} footer={footer}>
      <p>
        An event of the type <code>webhook.test</code> is posted once. It is in the delivery log.
      </p>
      <FormError error={error} />
      {!error && <Answer id={id} delivery={data?.id ?? null} />}
    </Dialog>
  );
}

function Answer({ id, delivery }: { id: string; delivery: string | null }) {
  const { data: attempt, error } = useQuery({
    ...firstAttemptQuery(id, delivery ?? ""),
    enabled: delivery !== null,
  });
  if (error) return <p role="alert">{toSentence(error)}</p>;
  if (!attempt)
    return (
      <p className="notice" role="status">
        <span className="spinner" aria-hidden />
        <span className="grow">Waiting for the answer…</span>
      </p>
    );
  const isOk = attempt.status !== null && attempt.status >= 200 && attempt.status < 300;
  const Icon = isOk ? CircleCheck : AlertTriangle;
  return (
    <p className={isOk ? "notice good" : "notice bad"} role="status">
      <Icon size={16} aria-hidden />
      <span className="grow">
        {attempt.status === null ? "No answer" : `Answer ${attempt.status}`}
        {attempt.problem && `: ${escapeText(attempt.problem, 200)}`},{" "}
        {attempt.milliseconds.toLocaleString("en")} ms
      </span>
    </p>
  );
}
