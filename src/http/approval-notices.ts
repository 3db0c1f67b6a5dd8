// Notifies approvers of what waits for them, and everybody concerned of broken glass, once the act is recorded and
// without delaying its answer.
import { type Notice, noticeContent } from '../core/approval-notices.ts';
import type { AppliancePort, OpenState } from './appliance-port.ts';
import { baseUrlOf, type TenantHandle } from './tenant-directory.ts';

interface Around {
  readonly appliance: Pick<AppliancePort, 'world' | 'logger'>;
  readonly open: OpenState;
  readonly handle: TenantHandle;
}

export function tell(around: Around, notice: Notice): void {
  const { mailer, notifier } = around.open.people;
  if (mailer || notifier) void telling(around, notice);
}

async function telling({ appliance, open, handle }: Around, notice: Notice): Promise<void> {
  const { world, logger } = appliance;
  const { mailer, notifier } = open.people;
  const failed = (err: unknown): void => logger.error({ err, approval: notice.id }, 'a message about approvals failed');
  try {
    const place = { baseUrl: baseUrlOf({ open, handle }), now: world.now() };
    const content = await handle.store.transaction((tx) => noticeContent(tx, handle.tenant, notice, place));
    if (!content) return;
    const mails = mailer ? content.mails.map((mail) => mailer.send(mail)) : [];
    const sent = notifier ? [...mails, notifier.send(notice.id, content.event)] : mails;
    for (const result of await Promise.allSettled(sent)) if (result.status === 'rejected') failed(result.reason);
  } catch (error) {
    failed(error);
  }
}
