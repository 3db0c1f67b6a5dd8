// Preloaded into a program and each of its threads: reports on stderr, once each, which thread uses node:crypto for
// Argon2id or ChaCha20-Poly1305.
import nodeCrypto from 'node:crypto';
import { writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const said = new Set<string>();

for (const name of ['argon2Sync', 'createCipheriv'] as const) {
  const marked = new Proxy(nodeCrypto[name], {
    apply(original, self, given) {
      if (!said.has(name)) writeSync(2, `${name} ${isMainThread ? 'main' : 'thread'}\n`);
      said.add(name);
      return Reflect.apply(original, self, given);
    },
  });
  Reflect.set(nodeCrypto, name, marked);
}
syncBuiltinESMExports();
