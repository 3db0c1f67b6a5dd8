// News about approvals, polled while the window is visible: requests that wait for the reader, requests of theirs that
// were approved, and broken glass. The appliance answers a poll only when something changed, and records polls once an
// hour.
import { createContext, useContext, useEffect, useRef } from 'hono/jsx/dom';
import type { ApprovalRequest, BrokenGlass } from '../../api/approvals.ts';
import { sameJson } from '../../model/json.ts';
import { toast } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import type { SessionClient } from '../session.ts';
import { actText } from './act-words.ts';

interface ApprovalNews {
  /** Those that the reader could decide. */
  readonly inbox: readonly ApprovalRequest[];
  /** Own ones, which may be done now. */
  readonly granted: readonly ApprovalRequest[];
  /** Not acknowledged yet. */
  readonly broken: readonly BrokenGlass[];
}

const noNews: ApprovalNews = { inbox: [], granted: [], broken: [] };

interface Approvals extends ApprovalNews {
  /** Polls at once, such as after a decision. */
  readonly look: () => void;
}

export const ApprovalsContext = createContext<Approvals>({ ...noNews, look: () => {} });

export function useApprovals(): Approvals {
  return useContext(ApprovalsContext);
}

/** Milliseconds between polls of any page. */
const lookEvery = 20_000;
/** Milliseconds between polls of the pages about approvals. */
export const lookOften = 5_000;

/** For the shell. The first poll comes after the page's own requests. */
export function useApprovalNews({ polls, settled }: Pick<SessionClient, 'polls' | 'settled'>): Approvals {
  const [news, setNews] = useState(noNews);
  const known = useRef<ReadonlySet<string>>(null);
  const look = async (): Promise<void> => {
    try {
      const [inbox, granted, glass] = await Promise.all([
        polls.listApprovalRequests({ inbox: true }),
        polls.listApprovalRequests({ mine: true, state: 'granted' }),
        polls.listBrokenGlass({}),
      ]);
      const next = {
        inbox: inbox.requests,
        granted: granted.requests,
        broken: glass.broken.filter(({ acknowledged }) => acknowledged === null),
      };
      tellGranted(next.granted, known.current);
      known.current = new Set(next.granted.map(({ id }) => id));
      // Without news, nothing is rendered again.
      setNews((now) => (sameJson(now, next) ? now : next));
    } catch {
      // The page shows that the service cannot be reached; the next poll may succeed.
    }
  };
  usePolling(() => void look(), lookEvery);
  useEffect(() => void settled().then(look), []);
  return { ...news, look: () => void look() };
}

/** A notice about requests that were approved since the last look. */
function tellGranted(granted: readonly ApprovalRequest[], known: ReadonlySet<string> | null): void {
  const [first] = known ? granted.filter(({ id }) => !known.has(id)) : [];
  if (!first) return;
  const what = first.broken ? 'The glass is broken' : 'Approved';
  toast(`${what}: ${actText(first)}. Do it again now, and it will be done.`);
}

/** Calls `look` again and again while the window is visible, and when the reader comes back to it. */
export function usePolling(look: () => void, every: number): void {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    const lookIfVisible = (): void => {
      if (!document.hidden) latest.current?.();
    };
    const timer = setInterval(lookIfVisible, every);
    document.addEventListener('visibilitychange', lookIfVisible);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', lookIfVisible);
    };
  }, []);
}
