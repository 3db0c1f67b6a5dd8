// What the appliance tells of its health beside its API: `/readyz`, which is open to all, and `/metrics`.
import { baseUrl } from '../address.ts';
import { type Readiness, readinessOf } from './readiness.ts';

export async function readiness(signal: AbortSignal): Promise<Readiness> {
  const response = await fetch(`${baseUrl}/readyz`, { signal, headers: { accept: 'application/json' } });
  return readinessOf(response.status, await response.json().catch(() => undefined));
}
