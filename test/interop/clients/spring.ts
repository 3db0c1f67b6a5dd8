// Spring Vault, through which Spring applications use transit.
import { mavenProgram } from '../install.ts';
import { type Client, scenario } from './client.ts';

export const spring: Client = {
  name: 'spring-vault',
  from: 'Maven',
  async install() {
    const [java, ...before] = await mavenProgram('SpringVaultCalls');
    return {
      version: '3.1.2',
      scenarios: [
        scenario('keys, messages, batches, rewrap, derived, signatures, AppRole, errors', async (desk) => {
          await desk.run(java, before, { env: { ...desk.vault(desk.root.key), ROLE_ID: desk.root.keyid } });
        }),
      ],
    };
  },
};
