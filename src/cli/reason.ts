// The reason for what a command asks, which its requests carry: for those who approve it, or to break the glass.
import { KmsError } from '../errors.ts';
import { longestReason } from '../model/approval-rules.ts';
import { breakGlassHeader, reasonHeader } from '../model/names.ts';
import type { Cli } from './command.ts';

export type Fetch = (request: Request) => Promise<Response>;

/** Sends the reason along, if there is one. Throws `usage` for a text that cannot be one. */
export function withReason(cli: Cli, send: Fetch, way: 'local' | 'remote' = 'local'): Fetch {
  const reason = cli.globals.get('--reason');
  const { breakingGlass } = cli.io;
  if (way === 'remote' && breakingGlass !== undefined) {
    throw new KmsError('usage', "the glass can be broken only on the appliance's machine, not over the network", {
      hint: 'users whom the rules name can, with `kms approval break-glass --request ID`',
    });
  }
  const headers = [
    ...(reason === undefined ? [] : [[reasonHeader, inHeader(cli, reason)] as const]),
    ...(breakingGlass === undefined ? [] : [[breakGlassHeader, inHeader(cli, breakingGlass)] as const]),
  ];
  if (headers.length === 0) return send;
  return (request) => {
    for (const [name, text] of headers) request.headers.set(name, text);
    return send(request);
  };
}

/** Headers are ASCII. */
function inHeader(cli: Cli, reason: string): string {
  const { length } = [...reason];
  if (length >= 1 && length <= longestReason) return encodeURIComponent(reason.toWellFormed());
  throw cli.wrong(`--reason: expected 1 to ${longestReason} characters, got ${length}`);
}
