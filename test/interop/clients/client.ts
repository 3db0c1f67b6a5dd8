// A client that works with the appliance, and what it does there.
import type { Desk } from '../desk.ts';

export interface Client {
  /** By which it is asked for. */
  readonly name: string;
  readonly from: 'Debian' | 'Go' | 'Maven' | 'PyPI';
  /** It takes too long for every run. */
  readonly onlyIfNamed?: true;
  /** Answers what it says of its version, and its programs. Throws `Absent` where it can't be had. */
  install(): Promise<Installed>;
}

export interface Installed {
  readonly version: string;
  readonly scenarios: readonly Scenario[];
}

interface Scenario {
  /** What it does, in a few words. */
  readonly does: string;
  run(desk: Desk): Promise<unknown>;
}

/** In the order in which these clients are told of. */
export function scenario(does: string, run: Scenario['run']): Scenario {
  return { does, run };
}
