// Software that uses keyrings, whose keys the appliance never sees: age, and programs that take a password from a
// command.
import { createHash, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Desk, expect } from '../desk.ts';
import { debianPrograms, debianVersion, goItself, goLibraryProgram, goProgram } from '../install.ts';
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

export const hpke: Client = {
  name: 'go-hpke',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('hpke');
    return {
      version: await goItself(),
      scenarios: [
        scenario('crypto/hpke, MLKEM768-X25519: opens the key of a hybrid keyring, and the seal', async (desk) => {
          const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');
          const file = desk.path('hybrid.key');
          await desk.kms('keyring', 'create', 'hybrid', '--kem', 'mlkem768-x25519', '--private-key-out', file);
          const headers = { authorization: `Bearer ${desk.root.key}`, 'content-type': 'application/json' };
          const body = JSON.stringify({ ringname: 'hybrid' });
          const { key } = await (await fetch(`${desk.url}/ks/encrypt`, { method: 'POST', headers, body })).json();
          const pem = readFileSync(file, 'utf8').replace(/-----.*-----|\s/g, '');
          const {
            appliance,
            slots,
            master: fingerprint,
          } = JSON.parse(readFileSync(desk.path('kms-data', 'kms.seal'), 'utf8'));
          const text = readFileSync(desk.path('kms-data.master.key'), 'utf8');
          const secret = Buffer.from(/^kms-master-key-1 ([\w-]{43})\./.exec(text)?.[1] ?? '', 'base64url');
          const seed = hkdfSync('sha256', secret, '', 'kms/slot/v1/mlkem768-x25519', 32);
          const message = (of: Buffer, at: Uint8Array, info: string, aad: string) => ({
            ...{ Seed: base64(at), Info: base64(info), Aad: base64(aad) },
            ...{ Enc: base64(of.subarray(0, 1120)), Ciphertext: base64(of.subarray(1120)) },
          });
          const wrapped = Buffer.from(slots[0].wrapped, 'base64url');
          const stdin = JSON.stringify([
            message(
              Buffer.from(key.keyData.encrypted.key.value, 'base64'),
              Buffer.from(pem, 'base64').subarray(-32),
              'kms/ks/key/v1',
              key.id,
            ),
            message(wrapped, new Uint8Array(seed), 'kms/slot/v1', `${appliance}/${slots[0].id}`),
          ]);
          const [ofRing, master] = JSON.parse((await desk.run(program, [], { stdin })).stdout);
          expect(String(Buffer.from(ofRing.Plaintext, 'base64').length), /^32$/);
          const label = Buffer.from('kms/master/v1/fingerprint');
          const hash = createHash('sha256').update(label).update(Buffer.from(master.Plaintext, 'base64')).digest('hex');
          expect(fingerprint, new RegExp(`^${hash.slice(0, 16)}$`));
        }),
      ],
    };
  },
};

/** A command that prints the password NAME by `kms decrypt`, and the environment that it needs. */
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
