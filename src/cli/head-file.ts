// A head of the activity log in a file, as `kms activity head` printed it: JSON, or the names and values that people are shown.
import { KmsError } from '../errors.ts';
import type { Cli } from './cli.ts';
import { readSmallText } from './files.ts';
import { pathFrom } from './io.ts';

/** What people are shown of a head, and the fields of its JSON. */
export const headLabels = {
  tenant: 'tenant',
  sequence: 'seq',
  hash: 'hash',
  'signed at': 'signedAt',
  'public key': 'publicKey',
  signature: 'signature',
} as const;

export const headFormat = 'kms-activity-head-1';

/** The head that the option names; undefined when it is not given. Whether it is one, and signed, is for whoever uses it. */
export async function readHead(cli: Cli, option: string): Promise<object | undefined> {
  const name = cli.text(option);
  if (name === undefined) return undefined;
  const path = pathFrom(cli.io, name);
  const text = (await readSmallText(path, 'the head')).trim();
  const head = text.startsWith('{') ? parsed(text) : shown(text);
  if (head) return head;
  throw new KmsError('invalid', `${path} does not hold a head of the activity log`, {
    hint: 'keep what `kms activity head` prints, whole',
  });
}

function parsed(text: string): object | undefined {
  try {
    // Text that begins with a brace and parses is an object.
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

function shown(text: string): object | undefined {
  const values = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, label, value] = /^(\S.*?) {2,}(\S.*?)\r?$/.exec(line) ?? [];
    if (label !== undefined && value !== undefined) values.set(label, value);
  }
  const head: Record<string, unknown> = { format: headFormat };
  for (const [label, field] of Object.entries(headLabels)) {
    const value = values.get(label);
    if (value === undefined) return undefined;
    head[field] = field === 'seq' ? Number(value) : value;
  }
  return head;
}
