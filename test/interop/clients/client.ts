// A client that works with the appliance, and its scenarios.
import type { Desk } from '../desk.ts';

export interface Client {
  /** The name to select it by. */
  readonly name: string;
  readonly from: 'crates.io' | 'Debian' | 'Go' | 'Maven' | 'npm' | 'PyPI';
  /** Runs in scripts/interop alone, though the gate could install it. */
  readonly onlyByHand?: true;
  /** Runs only by name, because it takes too long for every run. */
  readonly onlyIfNamed?: true;
  /** Installs it; returns its version as it states it, and its scenarios. Throws `Absent` if it can't be installed. */
  install(): Promise<Installed>;
}

export interface Installed {
  readonly version: string;
  readonly scenarios: readonly Scenario[];
}

interface Scenario {
  /** A short description. */
  readonly does: string;
  run(desk: Desk): Promise<unknown>;
}

/** Makes a scenario; clients report them in the order listed. */
export function scenario(does: string, run: Scenario['run']): Scenario {
  return { does, run };
}
