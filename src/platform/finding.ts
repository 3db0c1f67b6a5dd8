// Findings of `kms doctor`: a name for scripts, a severity, a subject, and what to do.

import type { CryptoInUse } from '../api/local/status.ts';

type Severity =
  /** Something is lost or exposed, or soon will be. */
  | 'error'
  /** Something is wrong. */
  | 'warning'
  /** It could be better; no reason to fail. */
  | 'advice';

export interface Finding {
  readonly severity: Severity;
  readonly name: string;
  /** The file, device or store. */
  readonly subject: string;
  readonly message: string;
  readonly advice: string;
}

export type Find = (severity: Severity, name: string, subject: string, message: string, advice: string) => void;

/** Extent of the examination. */
export interface Examined {
  readonly stores: number;
  /** Activity records that were verified. */
  readonly activities: number;
  /** Earlier records that retention dropped. */
  readonly dropped: number;
}

export interface Examination extends Examined {
  /** The crypto of the server, if one answered. */
  readonly crypto?: CryptoInUse;
  readonly findings: readonly Finding[];
}

const ranks: Readonly<Record<Severity, number>> = { error: 0, warning: 1, advice: 2 };

/** Gathers findings; the worst first. */
export class Findings {
  readonly #all: Finding[] = [];

  readonly add: Find = (severity, name, subject, message, advice) => {
    this.#all.push({ severity, name, subject, message, advice });
  };

  take(findings: readonly Finding[]): void {
    this.#all.push(...findings);
  }

  get all(): readonly Finding[] {
    return this.#all.toSorted((a, b) => ranks[a.severity] - ranks[b.severity]);
  }
}
