// The webhook that notifies approvers of pending requests, signed like the activity stream. A message that does not
// arrive is retried a few times and then given up: the request is pending in the console all the same.
import { setTimeout as pause } from 'node:timers/promises';
import type { Notifier } from '../core/approval-notices.ts';
import { utf8 } from '../crypto/bytes.ts';
import { WebhookReceiver } from '../telemetry/streaming/webhook.ts';

export interface NotifySettings {
  readonly url: string;
  /** At least one; each of them signs. */
  readonly secrets: readonly Uint8Array[];
  /** PEM of the authorities to trust instead of the system's. */
  readonly ca?: string | undefined;
}

/** Milliseconds before each further try. */
const pauses = [1000, 10_000, 60_000];

export function webhookNotifier({ url, secrets, ca }: NotifySettings, now: () => number): Notifier {
  const receiver = new WebhookReceiver({ kind: 'webhook', name: url, url }, { secrets, ca, now });
  return {
    async send(id, event) {
      const body = utf8(`${JSON.stringify(event)}\n`);
      await receiver.ready();
      for (let tries = 0; ; tries++) {
        try {
          return await receiver.deliver(id, 'application/json', body);
        } catch (error) {
          const wait = pauses[tries];
          if (wait === undefined) throw error;
          await pause(wait, undefined, { ref: false });
        }
      }
    },
  };
}
