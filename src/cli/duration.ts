// How long something lasts, as people write it: `30s`, `15m`, `12h`, `7d`.
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Ten years: more is a mistake, and sums of times stay what dates can say. */
const longest = 3650 * 86_400_000;

/** Milliseconds; undefined when the option is not given. */
export function duration(cli: Cli, option: string): number | undefined {
  const text = cli.text(option);
  if (text === undefined) return undefined;
  const [, digits, unit = ''] = /^([0-9]{1,9})([smhd])$/.exec(text) ?? [];
  const milliseconds = Number(digits) * (units[unit] ?? Number.NaN);
  if (milliseconds > 0 && milliseconds <= longest) return milliseconds;
  throw new KmsError('usage', `${option}: expected a duration such as 30s, 15m, 12h or 7d, got "${text}"`, {
    hint: cli.seeHelp,
  });
}
