// Programs that speak Vault transit, and some of them AWS KMS: SOPS, cosign, HashiCorp's wrapper, Tink, OpenBao's library.
import { writeFileSync } from 'node:fs';
import { held } from '../approver.ts';
import { type Desk, expect } from '../desk.ts';
import { goLibraryProgram, goProgram, goVersion } from '../install.ts';
import { awsKey } from './aws.ts';
import { type Client, scenario } from './client.ts';

export const sops: Client = {
  name: 'sops',
  from: 'Go',
  async install() {
    const version = 'v3.13.3';
    const program = await goProgram('github.com/getsops/sops/v3/cmd/sops', version);
    return {
      version,
      scenarios: [
        scenario('hc_vault: encrypt, decrypt, rotate the ring, rotate the file; denials', async (desk) => {
          await desk.kms('key', 'create', 'sops');
          const { key } = await desk.token('key.sops.encrypt', 'key.sops.decrypt');
          const env = desk.vault(key);
          const uri = `${desk.address}/v1/transit/keys/sops`;
          desk.write('plain.yaml', 'password: hunter2\n');
          const made = await desk.run(program, ['encrypt', '--hc-vault-transit', uri, 'plain.yaml'], { env });
          expect(made.stdout, /enc: vault:v1:/);
          desk.write('sops.yaml', made.stdout);
          const opened = await desk.run(program, ['decrypt', 'sops.yaml'], { env });
          expect(opened.stdout, /^password: hunter2\n$/);
          await desk.kms('key', 'rotate', 'sops');
          await desk.run(program, ['rotate', '-i', 'sops.yaml'], { env });
          expect((await desk.run(program, ['decrypt', 'sops.yaml'], { env })).stdout, /hunter2/);
          expect((await desk.run('cat', ['sops.yaml'])).stdout, /enc: vault:v2:/);
          const wrong = await desk.refused(program, ['decrypt', 'sops.yaml'], { env: desk.vault('kms_wrong') });
          expect(wrong.stderr, /403[\s\S]*permission denied/);
          const absent = `${desk.address}/v1/transit/keys/absent`;
          const { key: any } = await desk.token('key.*.encrypt');
          const none = await desk.refused(program, ['encrypt', '--hc-vault-transit', absent, 'plain.yaml'], {
            env: desk.vault(any),
          });
          expect(none.stderr, /400[\s\S]*encryption key not found/);
        }),
        scenario('hc_vault: decrypt waits under a rule until it is approved', async (desk) => {
          await desk.kms('key', 'create', 'sops-held');
          const { key } = await desk.token('key.sops-held.encrypt', 'key.sops-held.decrypt');
          const env = desk.vault(key);
          desk.write('plain.yaml', 'password: hunter2\n');
          const uri = `${desk.address}/v1/transit/keys/sops-held`;
          const made = await desk.run(program, ['encrypt', '--hc-vault-transit', uri, 'plain.yaml'], { env });
          desk.write('sops-held.yaml', made.stdout);
          const opened = await held(desk, 'key.sops-held.decrypt', () =>
            desk.run(program, ['decrypt', 'sops-held.yaml'], { env }),
          );
          expect(opened.stdout, /^password: hunter2\n$/);
        }),
        scenario(
          'kms (AWS): encrypt under a context, decrypt, rotate the key, rotate the file; denials',
          async (desk) => {
            const { env, arn } = await awsKey(desk, 'sops-aws');
            desk.write('plain.yaml', 'password: hunter2\n');
            const context = ['--encryption-context', 'repository:shop'];
            const made = await desk.run(program, ['encrypt', '--kms', arn, ...context, 'plain.yaml'], { env });
            desk.write('sops-aws.yaml', made.stdout);
            const opened = async () => (await desk.run(program, ['decrypt', 'sops-aws.yaml'], { env })).stdout;
            expect(await opened(), /^password: hunter2\n$/);
            await desk.kms('key', 'rotate', 'sops-aws');
            expect(await opened(), /hunter2/);
            await desk.run(program, ['rotate', '-i', 'sops-aws.yaml'], { env });
            expect(await opened(), /hunter2/);
            const altered = made.stdout.replace('repository: shop', 'repository: other');
            desk.write('sops-other.yaml', altered);
            if (altered === made.stdout) throw new Error('expected the context in the file');
            const bound = await desk.refused(program, ['decrypt', 'sops-other.yaml'], { env });
            expect(bound.stderr, /InvalidCiphertextException/);
            const wrong = await desk.refused(program, ['decrypt', 'sops-aws.yaml'], {
              env: await desk.aws('key.list'),
            });
            expect(wrong.stderr, /AccessDeniedException/);
            const byAlias = arn.replace(/key\/.*/, 'alias/sops-aws');
            const named = await desk.run(program, ['encrypt', '--kms', byAlias, 'plain.yaml'], { env });
            desk.write('sops-aws.yaml', named.stdout);
            expect(await opened(), /hunter2/);
          },
        ),
        scenario('age: a recipient of a keyring, through the plugin', async (desk) => {
          const { env } = await agePlugin(desk, 'sops-age');
          desk.write('plain.json', '{"password":"hunter2"}');
          const recipient = (await desk.kms('age', 'recipient', 'sops-age')).trim();
          const made = await desk.run(program, ['encrypt', '--age', recipient, 'plain.json'], { env });
          desk.write('sops-age.json', made.stdout);
          const identity = desk.path('sops-age.identity');
          const opened = await desk.run(program, ['decrypt', 'sops-age.json'], {
            env: { ...env, SOPS_AGE_KEY_FILE: identity },
          });
          expect(opened.stdout, /"password": "hunter2"/);
        }),
      ],
    };
  },
};

/** A keyring, its identity with the private key in NAME.identity, and an environment with the plugin in its PATH. */
export async function agePlugin(desk: Desk, ring: string) {
  await desk.kms('keyring', 'create', ring, '--private-key-out', desk.path(`${ring}.key`));
  const flags = ['encrypt', 'decrypt'].map((what) => `keyring.${ring}.${what}`);
  const { key, keyid } = await desk.token(...flags);
  // `kms age-plugin install` links an executable; here it may run from the sources.
  writeFileSync(desk.path('bin', 'age-plugin-kms'), '#!/bin/sh\nexec kms __age-plugin "$@"\n', { mode: 0o755 });
  const identity = await desk.kms('age', 'identity', ring, '--private-key', desk.path(`${ring}.key`));
  desk.write(`${ring}.identity`, identity);
  const env = { ...desk.own(key), KMS_PRIVATE_KEY: desk.path(`${ring}.key`) };
  return { env, revoke: () => desk.kms('apikey', 'revoke', keyid) };
}

export const cosign: Client = {
  name: 'cosign',
  from: 'Go',
  async install() {
    const version = 'v3.1.3';
    const program = await goProgram('github.com/sigstore/cosign/v3/cmd/cosign', version);
    const offline = ['--yes', '--use-signing-config=false', '--tlog-upload=false', '--new-bundle-format=false'];

    async function signs(desk: Desk, ring: string, file: 'file' | 'no file'): Promise<void> {
      const { key } = await desk.token(...['read', 'sign', 'verify'].map((what) => `key.${ring}.${what}`));
      const named = `hashivault://${ring}`;
      desk.write('release.tar', 'the release');
      desk.write('other.tar', 'another release');
      const ofVersion1 = `${ring}.1.pub`;
      for (const version of [1, 2]) {
        // cosign assumes a signature by version 1 unless this says otherwise.
        const env = { ...desk.vault(key), VAULT_KEY_PREFIX: `vault:v${version}:` };
        const publicKey = desk.path(`${ring}.${version}.pub`);
        desk.write(`${ring}.${version}.pub`, (await desk.run(program, ['public-key', '--key', named], { env })).stdout);
        const out = `${ring}.${version}.sig`;
        await desk.run(program, ['sign-blob', ...offline, '--key', named, '--output-signature', out, 'release.tar'], {
          env,
        });
        const verify = ['verify-blob', '--insecure-ignore-tlog', '--signature', out, '--key'];
        await desk.run(program, [...verify, named, 'release.tar'], { env });
        await desk.refused(program, [...verify, named, 'other.tar'], { env });
        if (file === 'file') {
          await desk.run(program, [...verify, publicKey, 'release.tar']);
          await desk.refused(program, [...verify, publicKey, 'other.tar']);
          if (version > 1) await desk.refused(program, [...verify, desk.path(ofVersion1), 'release.tar']);
        }
        await desk.kms('key', 'rotate', ring);
      }
      const denied = await desk.refused(program, ['public-key', '--key', named], { env: desk.vault('kms_wrong') });
      expect(denied.stderr, /permission denied/);
    }

    return {
      version,
      scenarios: [
        scenario('hashivault://, ECDSA P-256: make the key, sign, verify there and by a file, rotate', async (desk) => {
          const { key } = await desk.token('key.create', 'key.cosign-p256.read');
          await desk.run(program, ['generate-key-pair', '--kms', 'hashivault://cosign-p256'], { env: desk.vault(key) });
          expect((await desk.run('cat', ['cosign.pub'])).stdout, /^-----BEGIN PUBLIC KEY-----\n/);
          await signs(desk, 'cosign-p256', 'file');
        }),
        scenario('awskms://, make the key, sign, verify there and by a file; another file', async (desk) => {
          const env = await desk.aws('key.*');
          const named = 'awskms:///alias/cosign-aws';
          await desk.run(program, ['generate-key-pair', '--kms', named], { env });
          desk.write('aws.pub', (await desk.run(program, ['public-key', '--key', named], { env })).stdout);
          desk.write('release.tar', 'the release');
          desk.write('other.tar', 'another release');
          const sign = ['sign-blob', ...offline, '--key', named, '--output-signature', 'aws.sig', 'release.tar'];
          await desk.run(program, sign, { env });
          const verify = ['verify-blob', '--insecure-ignore-tlog', '--signature', 'aws.sig', '--key'];
          for (const key of [named, 'aws.pub']) {
            await desk.run(program, [...verify, key, 'release.tar'], { env });
            await desk.refused(program, [...verify, key, 'other.tar'], { env });
          }
          const denied = await desk.refused(program, sign, { env: await desk.aws('key.list') });
          expect(denied.stderr, /AccessDeniedException/);
        }),
        scenario('hashivault://, Ed25519: sign, verify there, rotate', async (desk) => {
          await desk.kms('key', 'create', 'cosign-ed25519', '--type', 'ed25519');
          // With such a key cosign has Vault sign a digest as if it were the message, but verifies the message itself
          // if the key is in a file: it accepts neither OpenBao's signatures nor ours there.
          await signs(desk, 'cosign-ed25519', 'no file');
        }),
      ],
    };
  },
};

export const wrapping: Client = {
  name: 'go-kms-wrapping',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('wrapping');
    return {
      version: await goVersion('github.com/hashicorp/go-kms-wrapping/wrappers/transit/v2'),
      scenarios: [
        scenario(
          'HashiCorp’s transit wrapper: wrap, unwrap, what was altered, a new key id once rotated',
          async (desk) => {
            await desk.kms('key', 'create', 'wrapping');
            const { key } = await desk.token('key.wrapping.encrypt', 'key.wrapping.decrypt');
            for (const KEY_ID of ['v1', 'v2']) {
              await desk.run(program, [], { env: { ...desk.vault(key), RING: 'wrapping', KEY_ID } });
              await desk.kms('key', 'rotate', 'wrapping');
            }
          },
        ),
      ],
    };
  },
};

export const tink: Client = {
  name: 'tink',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('tink');
    return {
      version: await goVersion('github.com/tink-crypto/tink-go-hcvault/v2'),
      scenarios: [
        scenario('hcvault: AEAD, envelope, wrong associated data, derived ring', async (desk) => {
          await desk.kms('key', 'create', 'tink');
          await desk.kms('key', 'create', 'tink-derived', '--derived');
          const rings = ['tink', 'tink-derived'];
          const { key } = await desk.token(...rings.flatMap((r) => [`key.${r}.encrypt`, `key.${r}.decrypt`]));
          const env = { ...desk.vault(key), RING: 'tink', DERIVED_RING: 'tink-derived' };
          await desk.run(program, [], { env });
        }),
      ],
    };
  },
};

export const openbaoLibrary: Client = {
  name: 'openbao-api',
  from: 'Go',
  async install() {
    const program = await goLibraryProgram('openbao');
    return {
      version: await goVersion('github.com/openbao/openbao/api/v2'),
      scenarios: [
        scenario(
          'OpenTofu’s two calls, bound and not; unknown ring 400, absent key nil, wrong token 403',
          async (desk) => {
            await desk.kms('key', 'create', 'tofu-calls');
            const { key } = await desk.token('key.*.datakey', 'key.*.decrypt', 'key.*.read');
            await desk.run(program, [], { env: { ...desk.vault(key), RING: 'tofu-calls' } });
          },
        ),
      ],
    };
  },
};
