// `kms serve` in this process, as typed.
import type { Desk, Ran } from './kms.ts';

/** A server on a free port; `stop` acts as SIGTERM. */
export async function serving(
  d: Desk,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<{ url: string; stop(): Promise<Ran> }> {
  const end = new AbortController();
  const listening = Promise.withResolvers<string>();
  let stderr = '';
  const ran = d.kms(['serve', '--listen', '127.0.0.1:0', '--log-level', 'silent', ...args], {
    signal: end.signal,
    env,
    onStderr(text) {
      stderr += text;
      const [, url] = /^kms: listening on (\S+)(?: \(.*\))?$/m.exec(stderr) ?? [];
      if (url) listening.resolve(url);
    },
  });
  const url = await Promise.race([
    listening.promise,
    ran.then(({ code }) => Promise.reject(new Error(`serve ended with ${code}: ${stderr}`))),
  ]);
  return {
    url,
    stop() {
      end.abort();
      return ran;
    },
  };
}
