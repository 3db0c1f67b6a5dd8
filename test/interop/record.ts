// Sends all requests to an OpenBao at `BAO_ADDR`, and records its answers: `record.ts VERSION`.
import { writeFileSync } from 'node:fs';
import { askAll } from './requests.ts';

const { BAO_ADDR = 'http://127.0.0.1:8200', BAO_TOKEN = 'root' } = process.env;
const [, , version = 'unknown'] = process.argv;
for (const [path, type] of [
  ['sys/mounts/transit', 'transit'],
  ['sys/auth/approle', 'approle'],
]) {
  await fetch(`${BAO_ADDR}/v1/${path}`, {
    method: 'POST',
    headers: { 'X-Vault-Token': BAO_TOKEN },
    body: JSON.stringify({ type }),
  });
}
const told = await askAll(`${BAO_ADDR}/v1/`, BAO_TOKEN, fetch);
const file = new URL('openbao.json', import.meta.url);
writeFileSync(file, `${JSON.stringify({ version, told }, null, 2)}\n`);
