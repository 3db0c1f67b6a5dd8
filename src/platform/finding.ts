// What `kms doctor` finds: a name that scripts go by, how bad it is, where, and what to do.

import type { CryptoInUse } from '../api/local/status.ts';

type Severity =
  /** Something is lost, exposed, or about to be. */
  | 'error'
  /** Something is not as it should be. */
  | 'warning'
  /** It could be better; that alone is no reason to fail. */
  | 'advice';

export interface Finding {
  readonly severity: Severity;
  readonly name: string;
  /** The file, the device, the store. */
  readonly subject: string;
  readonly message: string;
  readonly advice: string;
}

export type Find = (severity: Severity, name: string, subject: string, message: string, advice: string) => void;

/** How much was looked at. */
export interface Examined {
  readonly stores: number;
  /** Records of activity that were followed. */
  readonly activities: number;
  /** Those before them, which retention dropped. */
  readonly dropped: number;
}

export interface Examination extends Examined {
  /** Of the server, where it was one. */
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
