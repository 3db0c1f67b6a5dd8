// `kms tofu-key`, run by OpenTofu as its key provider `external`: a new key to encrypt the state, and the key of the
// last state.

import { askForKey } from '../../client/known-keys.ts';
import { newTofuMetadata, readTofuInput, tofuAnswer, tofuGreeting, tofuKeyOf } from '../../client/tofu-keys.ts';
import { KmsError } from '../../errors.ts';
import type { Cli, CliOf } from '../command.ts';
import { inTime, withClient } from '../connect.ts';
import type { tofu } from '../grammar/other-software.ts';
import { mustReachStdout, write } from '../io.ts';
import { keptRingKey, namedRingKey } from '../ring-key-file.ts';
import { openInput } from '../streams.ts';

export async function tofuKey(cli: CliOf<typeof tofu.tofuKey>): Promise<void> {
  const ringname = cli.get('--ring');
  mustReachStdout(cli.io);
  await write(cli.io.stdout, tofuGreeting);
  const last = readTofuInput(await readInput(cli));
  const answer = await withClient(cli, async (client, connection) => {
    const named = await namedRingKey(cli);
    const privateKeyOf = async (ring: string) => named ?? (await keptRingKey(cli, connection, ring));
    const old =
      last &&
      (await askForKey(
        client,
        {},
        (known) => inTime(connection, (signal) => client.decrypt({ header: last.header, ...known }, { signal })),
        (told) => privateKeyOf(told.ringname),
      ));
    const { answer, bytes } = await askForKey(
      client,
      { ringname, privateKeys: await privateKeyOf(ringname) },
      (known) => inTime(connection, (signal) => client.encrypt({ ringname, ...known }, { signal })),
      () => privateKeyOf(ringname),
    );
    const next = newTofuMetadata(answer.header);
    return tofuAnswer(tofuKeyOf(bytes, next), last && old && tofuKeyOf(old.bytes, last), next);
  });
  await write(cli.io.stdout, answer);
}

/** Maximum bytes of input: far more than our metadata need. */
const most = 65_536;

async function readInput(cli: Cli): Promise<Uint8Array> {
  const { source } = await openInput(cli, undefined);
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > most) throw new KmsError('invalid', `expected at most ${most} bytes on stdin`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
