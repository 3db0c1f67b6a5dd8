// hvac, the library with which Ansible and other Python software speak to Vault.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonPrograms } from '../install.ts';
import { type Client, scenario } from './client.ts';
import { workload } from './workload-login.ts';

const script = fileURLToPath(new URL('../programs/hvac_calls.py', import.meta.url));
const logins = fileURLToPath(new URL('../programs/hvac_logins.py', import.meta.url));

export const hvac: Client = {
  name: 'hvac',
  from: 'PyPI',
  async install() {
    const python = join(await pythonPrograms('hvac==2.4.0'), 'python');
    return {
      version: '2.4.0',
      scenarios: [
        scenario('keys, messages, batches, data keys, signatures, AppRole, errors; secrets of KV', async (desk) => {
          const env = { ...desk.vault(desk.root.key), ROLE_ID: desk.root.keyid };
          await desk.run(python, [script], { env });
        }),
        scenario('jwt and kubernetes: login, lookup_self, renew_self, revoke_self; a refused token', async (desk) => {
          const { role, token } = await workload(desk, 'hvac-login');
          const env = { ...desk.vault(''), ROLE: role, JWT: token(), EXPIRED: token(-100) };
          await desk.run(python, [logins], { env });
        }),
      ],
    };
  },
};
