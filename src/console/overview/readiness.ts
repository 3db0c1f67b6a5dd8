// What `/readyz` tells everybody: whether the appliance can serve, and how old its last verified backup is.

export interface Readiness {
  readonly isReady: boolean;
  readonly isSealed: boolean;
  /** Why it is not ready. */
  readonly reason: string | undefined;
  /** Undefined where the answer does not tell. */
  readonly backup: 'none' | { readonly at: string; readonly ageSeconds: number } | undefined;
  /** Undefined where nothing is shipped. */
  readonly shipping: { readonly isWorking: boolean; readonly ageSeconds: number | undefined } | undefined;
}

/** Of an answer with this status and body; what is missing or of another type is left out. */
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

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}
