// `kms metrics`: what Prometheus reads at `/metrics`, for a look without it.
import { errorOfAnswer, errorOfFailure, notOurs } from '../../client/failure.ts';
import type { Cli } from '../cli.ts';
import { tenantHeader, withClient } from '../connect.ts';
import { write } from '../io.ts';
import { printJson } from '../output.ts';

export async function run(cli: Cli): Promise<void> {
  await withClient(cli, async (_client, { baseUrl, fetch, headers, way }) => {
    const tenant = way === 'network' ? undefined : cli.text('--tenant');
    const named = tenant === undefined ? headers : { ...headers, [tenantHeader]: tenant };
    let response: Response;
    let text: string;
    try {
      response = await fetch(new Request(`${baseUrl}/metrics`, { headers: named }));
      text = await response.text();
    } catch (cause) {
      throw errorOfFailure(cause, baseUrl, cli.io.signal);
    }
    if (response.status !== 200) throw errorOfAnswer(response, body(text), baseUrl);
    if (!response.headers.get('content-type')?.startsWith('text/plain')) throw notOurs(baseUrl, 'metrics');
    if (cli.json) return printJson(cli, { metrics: text });
    await write(cli.io.stdout, text);
  });
}

function body(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
