// Software that uses keyrings, whose keys the appliance never sees: age, the API server of Kubernetes, and programs that
// take a password from a command.
import { type Desk, expect } from '../desk.ts';
import { debianPrograms, debianVersion, goLibraryProgram, goProgram, goVersion } from '../install.ts';
import { type Client, scenario } from './client.ts';
import { agePlugin } from './transit.ts';

export const ageOfDebian: Client = {
  name: 'age-debian',
  from: 'Debian',
  async install() {
    await debianPrograms({ age: 'age' });
    return { version: await debianVersion('age'), scenarios: [ageScenario('age', 'age-debian')] };
  },
};

export const ageOfGo: Client = {
  name: 'age',
  from: 'Go',
  async install() {
    const version = 'v1.3.2';
    const program = await goProgram('filippo.io/age/cmd/age', version);
    return { version, scenarios: [ageScenario(program, 'age-go')] };
  },
};

function ageScenario(program: string, ring: string) {
  return scenario('age-plugin-kms: encrypt, decrypt, after a rotation, after the API key was revoked', async (desk) => {
    const { env, revoke } = await agePlugin(desk, ring);
    const recipient = (await desk.kms('age', 'recipient', ring)).trim();
    const [file, identity] = [`${ring}.age`, `${ring}.identity`];
    await desk.run(program, ['-r', recipient, '-o', file], { env, stdin: 'hunter2' });
    await desk.kms('keyring', 'rotate', ring);
    const opened = await desk.run(program, ['-d', '-i', identity, file], { env });
    expect(opened.stdout, /^hunter2$/);
    await revoke();
    const denied = await desk.refused(program, ['-d', '-i', identity, file], { env });
    expect(denied.stderr, /the credential is not known, no longer valid/);
  });
}

export const kubernetes: Client = {
  name: 'kubernetes',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('kubernetes');
    return {
      version: await goVersion('k8s.io/kms'),
      scenarios: [
        scenario('k8s.io/kms’s client: status, encrypt, decrypt, what was altered; after a rotation', async (desk) => {
          await desk.kms('keyring', 'create', 'etcd', '--private-key-out', desk.path('etcd.key'));
          const { key } = await desk.token(...['read', 'encrypt', 'decrypt'].map((what) => `keyring.etcd.${what}`));
          const env = { ...desk.own(key), KMS_PRIVATE_KEY: desk.path('etcd.key') };
          const socket = `unix://${desk.path('kubernetes.sock')}`;
          const plugin = desk.start('kms', ['kubernetes-plugin', '--ring', 'etcd', '--listen', socket], { env });
          try {
            await plugin.until('the plugin listens', () => desk.run('test', ['-S', desk.path('kubernetes.sock')]));
            for (let turn = 0; turn < 2; turn++) {
              await desk.run(program, [], { env: { SOCKET: socket } });
              await desk.kms('keyring', 'rotate', 'etcd');
            }
          } finally {
            await plugin.end();
          }
        }),
      ],
    };
  },
};

/** A command that writes the password NAME, as `kms decrypt` does, and the environment in which it can. */
async function passwordCommand(desk: Desk, name: string) {
  const ring = `passwords-${name}`;
  await desk.kms('keyring', 'create', ring, '--private-key-out', desk.path(`${ring}.key`));
  const sealed = desk.path(`${name}.kms`);
  const plain = desk.write(`${name}.txt`, 'correct horse battery staple\n');
  const privateKey = ['--private-key', desk.path(`${ring}.key`)];
  await desk.kms('encrypt', '--ring', ring, ...privateKey, '-o', sealed, plain);
  const { key, keyid } = await desk.token(`keyring.${ring}.decrypt`);
  const env = { ...desk.own(key), KMS_PRIVATE_KEY: desk.path(`${ring}.key`) };
  return { command: `kms decrypt ${sealed}`, env, revoke: () => desk.kms('apikey', 'revoke', keyid) };
}

export const restic: Client = {
  name: 'restic',
  from: 'Debian',
  async install() {
    await debianPrograms({ restic: 'restic' });
    return {
      version: await debianVersion('restic'),
      scenarios: [
        scenario('password command: init, backup, dump; refused once the API key was revoked', async (desk) => {
          const { command, env: own, revoke } = await passwordCommand(desk, 'restic');
          const env = { ...own, RESTIC_REPOSITORY: desk.path('restic'), RESTIC_PASSWORD_COMMAND: command };
          await desk.run('restic', ['init'], { env });
          const file = desk.write('to-keep.txt', 'hunter2');
          await desk.run('restic', ['backup', file], { env });
          expect((await desk.run('restic', ['dump', 'latest', file], { env })).stdout, /^hunter2$/);
          await revoke();
          await desk.refused('restic', ['snapshots'], { env });
        }),
      ],
    };
  },
};

export const borg: Client = {
  name: 'borg',
  from: 'Debian',
  async install() {
    await debianPrograms({ borg: 'borgbackup' });
    return {
      version: await debianVersion('borgbackup'),
      scenarios: [
        scenario('password command: init, create, extract; refused once the API key was revoked', async (desk) => {
          const { command, env: own, revoke } = await passwordCommand(desk, 'borg');
          const env = { ...own, BORG_REPO: desk.path('borg'), BORG_PASSCOMMAND: command };
          await desk.run('borg', ['init', '--encryption=repokey'], { env });
          desk.write('archived.txt', 'hunter2');
          await desk.run('borg', ['create', '::first', 'archived.txt'], { env });
          const out = await desk.run('borg', ['extract', '--stdout', '::first', 'archived.txt'], { env });
          expect(out.stdout, /^hunter2$/);
          await revoke();
          await desk.refused('borg', ['list', '::first'], { env });
        }),
      ],
    };
  },
};
