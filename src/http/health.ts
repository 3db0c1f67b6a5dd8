// Health, for whatever watches the process: alive, and able to serve. Both work while sealed and need no tenant.
import type { AppDeps } from './deps.ts';
import type { Served } from './request-log.ts';
import { answered } from './respond.ts';

export async function serveHealth(): Promise<Served> {
  return { outcome: answered({ status: 'ok' }) };
}

export function serveReadiness(deps: AppDeps): () => Promise<Served> {
  return async () => {
    const { ok, reason, details } = deps.ready();
    if (ok) return { outcome: answered({ status: 'ready', ...details }) };
    const message = reason ?? 'not ready';
    return { outcome: { status: 503, body: { message, ...details } } };
  };
}
