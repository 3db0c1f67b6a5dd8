// Notifications about approvals: mails to those who can approve, and an event for a webhook. There is one for each
// request, without secrets; approvers decide in the console or with the CLI.
import { timestamp } from '../model/timestamp.ts';
import type { Tables } from '../store/port.ts';
import type { User } from '../store/tables/users.ts';
import { rulesNow } from './approval-standing.ts';
import { approvalProblem } from './approval-words.ts';
import { personOf } from './approvals.ts';
import { approversOf } from './approvers.ts';
import type { Tenant } from './context.ts';
import type { Mail } from './links.ts';
import { askersOf } from './persons.ts';

/** Mails of one message. */
const mostMails = 50;
/** Requests of one caller with their API keys that are mailed, in an hour. */
const mostMailed = 20;
const hour = 3_600_000;

/** A request that waits, or glass that was broken; by its id. */
export interface Notice {
  readonly kind: 'request' | 'glass';
  readonly id: string;
}

/** Sends events to a webhook. `id` is the same for the same event. */
export interface Notifier {
  send(id: string, event: object): Promise<void>;
}

interface NoticeContent {
  readonly mails: readonly Mail[];
  readonly event: object;
}

/** Undefined if there is nothing to tell any more. */
export function noticeContent(
  tx: Tables,
  tenant: Pick<Tenant, 'id' | 'name'>,
  { kind, id }: Notice,
  { baseUrl, now }: { readonly baseUrl: string; readonly now: number },
): NoticeContent | undefined {
  const about = { tenant: tenant.id, tenantName: tenant.name, url: `${baseUrl}/console/approvals` };
  return kind === 'request' ? requestContent(tx, id, about, now) : glassContent(tx, id, about);
}

interface About {
  readonly tenant: string;
  readonly tenantName: string;
  /** The page of the console. */
  readonly url: string;
}

function requestContent(tx: Tables, id: string, about: About, now: number): NoticeContent | undefined {
  const request = tx.approvalRequests.byId(id);
  const details = tx.approvalRequests.detailsOf(id);
  if (!request || !details || request.endedAt !== undefined) return undefined;
  const rules = rulesNow(tx, request, now);
  const { action, operation, object, reason } = details;
  const requester = personOf(tx, request.requester);
  const nth = tx.approvalRequests.countMadeBy(request.holder, request.createdAt - hour, request.createdAt);
  const people = (nth > mostMailed ? [] : rules).flatMap((rule) => {
    const asked = askersOf(tx, request.requester, rule);
    return approversOf(tx, rule).filter((user) => approvalProblem(tx, user.id, asked, rule) === undefined);
  });
  const needed = Math.max(0, ...rules.map(({ count }) => count));
  const what = object?.name === undefined ? action : `${action} (${object.name})`;
  const who = requester.name === '' ? requester.id : `${requester.name} (${requester.id})`;
  const lines = [
    `${who} asks for approval: ${what}`,
    ...(reason === undefined ? [] : [`Why: ${reason}`]),
    `It needs ${needed === 1 ? '1 approval' : `${needed} approvals`}, and waits until ${timestamp(request.createdAt + 86_400_000).slice(0, 16)} UTC.`,
    '',
    `Look at it here: ${about.url}`,
    `or with: kms approval show ${id}`,
    ...(nth < mostMailed ? [] : ['', 'Their further requests within the hour are not mailed.']),
  ];
  return {
    mails: mailsTo(people, 'Approval needed', lines),
    event: {
      ...about,
      type: 'approval.requested',
      at: request.createdAt,
      request: { id, requester, action, operation, object, needed, ...(reason !== undefined && { reason }) },
    },
  };
}

function glassContent(tx: Tables, id: string, about: About): NoticeContent | undefined {
  const broken = tx.brokenGlass.byId(id);
  if (!broken) return undefined;
  const { at, action, object, reason } = broken;
  const by = personOf(tx, broken.by);
  const who = by.name === '' ? by.id : `${by.name} (${by.id})`;
  const lines = [
    `${who} did this without the approval that it needs: ${action}`,
    `Why: ${reason}`,
    '',
    `The appliance reports it everywhere until somebody acknowledges it: ${about.url}`,
  ];
  const people = tx.approvalRules.list().flatMap((rule) => approversOf(tx, rule));
  return {
    mails: mailsTo(people, 'The glass was broken', lines),
    event: { ...about, type: 'approval.glass-broken', at, brokenGlass: { id, by, action, object, reason } },
  };
}

function mailsTo(people: readonly User[], subject: string, lines: readonly string[]): Mail[] {
  const text = `${lines.map((line) => line.replace(/[\p{Cc}]+/gu, ' ')).join('\n')}\n`;
  const addresses = [...new Set(people.map(({ email }) => email))].slice(0, mostMails);
  return addresses.map((to) => ({ to, subject: `${subject}: key management service`, text }));
}
