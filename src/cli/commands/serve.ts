// `kms serve`: serves until it is asked to end, then finishes what is under way.
import { type Cli, given } from '../cli.ts';
import { copySettings } from '../copy-options.ts';
import { printFirstKey } from '../first-key.ts';
import { say } from '../io.ts';
import { serverKeySources } from '../passphrase.ts';
import { peopleSettings } from '../people-options.ts';
import { dataDirectory } from '../target.ts';
import { visible } from '../visible.ts';

export async function run(cli: Cli): Promise<void> {
  const { signal } = cli.io;
  const hosts = cli.list('--host');
  const options = given({
    data: dataDirectory(cli),
    keyFile: cli.path('--key-file'),
    listen: cli.text('--listen'),
    url: cli.text('--url'),
    tlsCert: cli.path('--tls-cert'),
    tlsKey: cli.path('--tls-key'),
    behindProxy: cli.isOn('--behind-proxy'),
    hosts: hosts.length > 0 ? hosts : undefined,
    bodyLimit: cli.integer('--body-limit'),
    logLevel: cli.text('--log-level'),
    people: await peopleSettings(cli),
    copies: await copySettings(cli),
    metrics: { rings: cli.isOn('--metrics-rings') },
  });
  const { serve } = await import('../../server/serve.ts');
  let isNew = false;
  const serving = await serve({
    ...options,
    sources: serverKeySources(cli),
    onInitialised: async (made) => {
      isNew = true;
      await printFirstKey(cli, made);
    },
  });
  try {
    // On a terminal without TLS a hang-up is the terminal's end.
    if (options.tlsCert !== undefined || !cli.io.stdin.isTTY) cli.io.onHangup?.(() => void serving.reloadTls());
    await say(cli.io, `listening on ${serving.url}`);
    if (serving.sealed) await say(cli.io, `${visible(serving.sealed.message)}; open it with \`kms unseal\``);
    await sayHowToSetUp(cli, serving.setUpUrl, isNew);
    if (isNew)
      await say(
        cli.io,
        'next, in another terminal: `kms keyring create NAME`, then `kms encrypt --ring NAME -o OUT FILE`',
      );
    await aborted(signal);
  } finally {
    await serving.close();
  }
}

/** The link goes where the root API key went; into the log of each later start goes only how to get one. */
async function sayHowToSetUp(cli: Cli, url: string | undefined, isNew: boolean): Promise<void> {
  if (url === undefined) return;
  const text = isNew
    ? `to make your user, open this link in a browser; it works until there is one:\n${url}`
    : 'there is no user yet: `kms user set-up-link` makes the link for the first one';
  await say(cli.io, text);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
