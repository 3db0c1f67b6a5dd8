// Answers about the server under sys/: whether it is initialised, sealed, and leads.
import { version } from '../../version.ts';
import { hasNoBody, isSealed, type Told } from './answers.ts';
import type { Target } from './target.ts';

/** Undefined for a path that there is not. */
export function serverState({ method, query, parts }: Target, sealed: boolean, now: number): Told | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  switch (parts.slice(1).join('/')) {
    case 'init':
      return { status: 200, bare: { initialized: true } };
    case 'health':
      return health(sealed, query.get('sealedcode'), now);
    case 'seal-status': {
      const threshold = { t: 1, n: 1, progress: 0, nonce: '' };
      const rest = { version, migration: false, recovery_seal: false, storage_type: 'kms' };
      return { status: 200, bare: { type: 'kms', initialized: true, sealed, ...threshold, ...rest } };
    }
    // `bao status` and `vault status` ask for it.
    case 'leader': {
      const bare = { ha_enabled: false, is_self: false, leader_address: '', leader_cluster_address: '' };
      return sealed ? isSealed : { status: 200, bare };
    }
    default:
      return undefined;
  }
}

function health(sealed: boolean, sealedCode: string | null, now: number): Told {
  const wanted = Number(sealedCode ?? 503);
  const status = sealed ? (Number.isInteger(wanted) && wanted >= 200 && wanted <= 599 ? wanted : 400) : 200;
  const bare = {
    initialized: true,
    sealed,
    standby: sealed,
    replication_performance_mode: sealed ? 'unknown' : 'primary',
    replication_dr_mode: sealed ? 'unknown' : 'disabled',
    server_time_utc: Math.floor(now / 1000),
    version,
  };
  return hasNoBody(status) ? { status } : { status, bare };
}
