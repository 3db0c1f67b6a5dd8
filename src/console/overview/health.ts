// The appliance's health, as `/readyz` and the summary tell it.

export interface Readiness {
  readonly isReady: boolean;
  readonly isSealed: boolean;
  /** Why it is not ready. */
  readonly reason: string | undefined;
  /** Undefined if the response does not tell. */
  readonly backup: 'none' | { readonly at: string; readonly ageSeconds: number } | undefined;
  /** Undefined if nothing is shipped. */
  readonly shipping: { readonly isWorking: boolean; readonly ageSeconds: number | undefined } | undefined;
  /** Missing or changed files of the activity logs; undefined if there are none. */
  readonly faults: { readonly count: number; readonly first: readonly string[] } | undefined;
}

/** Reads a response with this status and body; fields that are missing or of a wrong type are left out. */
export function readinessOf(status: number, body: unknown): Readiness {
  const fields = recordOf(body) ?? {};
  const isReady = status === 200;
  const isSealed = fields.sealed === true;
  const message = typeof fields.message === 'string' ? fields.message : undefined;
  return {
    isReady,
    isSealed,
    reason: isReady ? undefined : (message ?? `it answers with status ${status}`),
    backup: backupOf(fields.lastVerifiedBackup),
    shipping: shippingOf(fields.shipping),
    faults: faultsOf(fields.activity),
  };
}

function backupOf(value: unknown): Readiness['backup'] {
  if (value === null) return 'none';
  const { at, ageSeconds } = recordOf(value) ?? {};
  return typeof at === 'string' && typeof ageSeconds === 'number' ? { at, ageSeconds } : undefined;
}

function shippingOf(value: unknown): Readiness['shipping'] {
  const fields = recordOf(value);
  if (!fields) return undefined;
  const { ok, ageSeconds } = fields;
  return { isWorking: ok === true, ageSeconds: typeof ageSeconds === 'number' ? ageSeconds : undefined };
}

function faultsOf(value: unknown): Readiness['faults'] {
  const { faulty, segments } = recordOf(value) ?? {};
  if (typeof faulty !== 'number' || faulty === 0) return undefined;
  const first = Array.isArray(segments) ? segments.filter((each) => typeof each === 'string') : [];
  return { count: faulty, first };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}
