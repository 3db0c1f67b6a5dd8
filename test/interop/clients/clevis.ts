// clevis, which unlocks disks while it can reach a Tang server.
import { type Desk, expect } from '../desk.ts';
import { debianPrograms, debianVersion } from '../install.ts';
import { type Client, scenario } from './client.ts';

const advertised = async (desk: Desk): Promise<string> => (await desk.kms('tang', 'show')).trim();

export const clevis: Client = {
  name: 'clevis',
  from: 'Debian',
  async install() {
    await debianPrograms({ clevis: 'clevis', 'clevis-luks-bind': 'clevis-luks', cryptsetup: 'cryptsetup-bin' });
    return {
      version: await debianVersion('clevis'),
      scenarios: [
        scenario('Tang: encrypt, decrypt; after a rotation; refused once the pair was deleted', async (desk) => {
          await desk.kms('tang', 'rotate');
          const first = await advertised(desk);
          const pin = JSON.stringify({ url: desk.tang, thp: first });
          const { stdout } = await desk.run('clevis', ['encrypt', 'tang', pin], { stdin: 'hunter2' });
          const decrypted = async () => (await desk.run('clevis', ['decrypt'], { stdin: stdout })).stdout;
          expect(await decrypted(), /^hunter2$/);
          await desk.kms('tang', 'rotate');
          expect(await decrypted(), /^hunter2$/);
          await desk.refused('clevis', ['encrypt', 'tang', pin], { stdin: 'x' });
          await desk.kms('tang', 'delete', first, '--yes');
          await desk.refused('clevis', ['decrypt'], { stdin: stdout });
        }),
        scenario('Tang: bind a disk (LUKS2), unlock it, bind it again after a rotation', async (desk) => {
          await desk.kms('tang', 'rotate');
          const disk = desk.write('disk', new Uint8Array(20 << 20));
          const key = desk.write('disk.key', 'passphrase');
          const quick = ['--type', 'luks2', '--pbkdf', 'pbkdf2', '--pbkdf-force-iterations', '1000'];
          await desk.run('cryptsetup', ['luksFormat', '-q', ...quick, disk, key]);
          const pin = async () => JSON.stringify({ url: desk.tang, thp: await advertised(desk) });
          await desk.run('clevis', ['luks', 'bind', '-y', '-k', key, '-d', disk, 'tang', await pin()]);
          const at = ['-d', disk, '-s', '1'];
          const unlock = async (): Promise<void> => {
            const { stdout } = await desk.run('clevis', ['luks', 'pass', ...at]);
            await desk.run('cryptsetup', ['open', '--test-passphrase', disk], { stdin: stdout });
          };
          await unlock();
          await desk.kms('tang', 'rotate');
          await unlock();
          await desk.refused('clevis', ['luks', 'report', '-q', ...at]);
          await desk.run('clevis', ['luks', 'edit', ...at, '-c', await pin()]);
          await desk.run('clevis', ['luks', 'report', '-q', ...at]);
          await unlock();
        }),
      ],
    };
  },
};
