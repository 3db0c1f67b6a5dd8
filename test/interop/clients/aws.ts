// Clients of AWS KMS from PyPI and npm: AWS's SDKs and command line, its Encryption SDKs, Tink, and MongoDB's field level
// encryption.
import { createPublicKey, verify } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { held } from '../approver.ts';
import { type Desk, expect } from '../desk.ts';
import { nodeModules, pythonPrograms } from '../install.ts';
import { type Client, scenario } from './client.ts';
import { workload } from './workload-login.ts';

const program = (name: string): string => fileURLToPath(new URL(`../programs/${name}`, import.meta.url));

/** A key with an alias of its name, and the environment of a client that may use it alone. */
export async function awsKey(desk: Desk, name: string, ...more: readonly string[]) {
  await desk.kms('key', 'create', name, ...more);
  const env = await desk.aws(`key.${name}.*`);
  const { arn } = await described(desk, env, `alias/${name}`);
  return { env, arn };
}

/** The ARN of a key, and the account that it names. */
export async function described(desk: Desk, env: Readonly<Record<string, string>>, key: string) {
  const python = join(await pythonPrograms(boto), 'python');
  const script = `import boto3; print(boto3.client('kms').describe_key(KeyId='${key}')['KeyMetadata']['Arn'])`;
  const arn = (await desk.run(python, ['-c', script], { env: withRegion(env) })).stdout.trim();
  return { arn, account: arn.split(':')[4] ?? '' };
}

/** Python's SDK reads the region from another variable. */
function withRegion(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...env, AWS_DEFAULT_REGION: env.AWS_REGION ?? '' };
}

const boto = 'boto3==1.44.8';

/** The environment of a client that has a signed token in place of an access key. */
export async function tokenEnv(desk: Desk, role: string): Promise<Readonly<Record<string, string>>> {
  const { token } = await workload(desk, role);
  const { account } = await described(desk, await desk.aws(`key.${role}.read`), `alias/${role}`);
  return {
    AWS_ENDPOINT_URL_KMS: desk.awsAddress,
    AWS_ENDPOINT_URL_STS: desk.awsAddress,
    AWS_WEB_IDENTITY_TOKEN_FILE: desk.write(`${role}.token`, token()),
    AWS_ROLE_ARN: `arn:aws:iam::${account}:role/${role}`,
    AWS_ROLE_SESSION_NAME: 'pod',
    AWS_REGION: 'us-east-1',
    KEY_ALIAS: `alias/${role}`,
    EXPIRED: token(-100),
  };
}

interface Shown {
  readonly algorithm: string;
  readonly key: string;
  readonly signature: string;
}

/** Signatures that the client had made, by another implementation. */
function checkSignatures(shown: readonly Shown[]): void {
  for (const { algorithm, key, signature } of shown) {
    const spki = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
    const hash = /SHA_(\d{3})$/.exec(algorithm)?.[1];
    const digest = /^(?:RSA|ECDSA)/.test(algorithm) ? `sha${hash}` : null;
    const padding = algorithm.startsWith('RSASSA_PSS') ? { padding: 6, saltLength: Number(hash) / 8 } : {};
    const isValid = verify(digest, Buffer.from('release'), { key: spki, ...padding }, Buffer.from(signature, 'base64'));
    if (!isValid) throw new Error(`${algorithm}: OpenSSL finds the signature invalid`);
  }
  if (shown.length < 9) throw new Error(`expected more signatures: ${shown.length}`);
}

export const boto3: Client = {
  name: 'boto3',
  from: 'PyPI',
  async install() {
    const python = join(await pythonPrograms(boto), 'python');
    return {
      version: '1.44.8',
      scenarios: [
        scenario('AWS KMS: the deletion of a key waits under a rule until it is approved', async (desk) => {
          const { env, arn } = await awsKey(desk, 'boto-held', '--deletion-allowed', 'true');
          const script = `import boto3; print(boto3.client('kms').schedule_key_deletion(KeyId='${arn}')['KeyState'])`;
          const deleted = await held(desk, 'key.boto-held.delete', () =>
            desk.run(python, ['-c', script], { env: withRegion(env) }),
          );
          expect(deleted.stdout, /^PendingDeletion$/m);
        }),
        scenario('AWS KMS: keys, messages, data keys, signatures, MACs, names, states, errors', async (desk) => {
          const env = withRegion(await desk.aws('key.*'));
          const { stdout } = await desk.run(python, [program('boto3_calls.py')], { env });
          checkSignatures(JSON.parse(stdout));
        }),
        scenario('AWS KMS: credentials for a signed token (STS), with no stored secret', async (desk) => {
          const env = withRegion(await tokenEnv(desk, 'boto3-pod'));
          await desk.run(python, [program('boto3_web_identity.py')], { env });
        }),
      ],
    };
  },
};

export const awsSdkJs: Client = {
  name: 'aws-sdk-js',
  from: 'npm',
  async install() {
    const version = '3.1164.0';
    const MODULES = await nodeModules(`@aws-sdk/client-kms@${version}`);
    return {
      version,
      scenarios: [
        scenario('AWS KMS: keys, messages, a signature, pages, errors, a clock that is slow', async (desk) => {
          const env = { ...(await desk.aws('key.*')), MODULES };
          await desk.run(process.execPath, [program('js/kms-calls.mjs')], { env });
        }),
        scenario('AWS KMS: credentials for a signed token (STS), with no stored secret', async (desk) => {
          const env = { ...(await tokenEnv(desk, 'js-pod')), MODULES };
          await desk.run(process.execPath, [program('js/web-identity.mjs')], { env });
        }),
      ],
    };
  },
};

export const awscli: Client = {
  name: 'awscli',
  from: 'PyPI',
  onlyByHand: true,
  async install() {
    const version = '1.46.3';
    const aws = join(await pythonPrograms(`awscli==${version}`), 'aws');
    return {
      version,
      scenarios: [
        scenario('AWS KMS: make a key and its alias, encrypt, decrypt; refusals', async (desk) => {
          const env = withRegion(await desk.aws('key.*'));
          const say = async (...args: string[]) => (await desk.run(aws, ['kms', ...args], { env })).stdout.trim();
          const made = await say('create-key', '--query', 'KeyMetadata.KeyId', '--output', 'text');
          await say('create-alias', '--alias-name', 'alias/cli', '--target-key-id', made);
          const bound = ['--encryption-context', 'app=pay'];
          const plain = `fileb://${desk.write('cli.txt', 'hunter2')}`;
          const text = ['--output', 'text', '--query'];
          const encrypt = ['encrypt', '--key-id', 'alias/cli', ...bound, '--plaintext', plain, ...text];
          desk.write('cli.blob', Buffer.from(await say(...encrypt, 'CiphertextBlob'), 'base64'));
          const blob = ['decrypt', '--ciphertext-blob', `fileb://${desk.path('cli.blob')}`];
          const opened = await say(...blob, ...bound, ...text, 'Plaintext');
          expect(Buffer.from(opened, 'base64').toString(), /^hunter2$/);
          const refused = await desk.refused(aws, ['kms', ...blob], { env });
          expect(refused.stderr, /\(InvalidCiphertextException\)/);
          expect(await say('list-aliases', ...text, 'Aliases[].AliasName'), /alias\/cli/);
          const wrong = { ...env, AWS_SECRET_ACCESS_KEY: 'x'.repeat(40) };
          expect((await desk.refused(aws, ['kms', 'list-keys'], { env: wrong })).stderr, /InvalidSignatureException/);
        }),
      ],
    };
  },
};

export const encryptionSdk: Client = {
  name: 'aws-encryption-sdk',
  from: 'PyPI',
  onlyByHand: true,
  async install() {
    const version = '4.0.7';
    const python = join(await pythonPrograms(`aws-encryption-sdk==${version}`, boto), 'python');
    const MODULES = await nodeModules('@aws-crypto/client-node@5.0.2');
    return {
      version: `${version} and @aws-crypto/client-node 5.0.2`,
      scenarios: [
        scenario('AWS KMS: Python and JavaScript: envelopes, strict and discovering, each other’s', async (desk) => {
          await desk.kms('key', 'create', 'envelope-other');
          const { env: own, arn } = await awsKey(desk, 'envelope');
          const any = await desk.aws('key.envelope.*', 'key.envelope-other.*');
          const other = await described(desk, any, 'alias/envelope-other');
          const env = { ...withRegion(any), KEY_ARN: arn, OTHER_ARN: other.arn, MODULES };
          const { stdout } = await desk.run(python, [program('encryption_sdk_calls.py')], { env });
          const more = { ...env, ...own, FROM_PYTHON: stdout.trim() };
          await desk.run(process.execPath, [program('js/encryption-sdk.mjs')], { env: more });
        }),
      ],
    };
  },
};

export const tinkPython: Client = {
  name: 'tink-python',
  from: 'PyPI',
  onlyByHand: true,
  async install() {
    const version = '1.16.1';
    const python = join(await pythonPrograms(`tink==${version}`, boto), 'python');
    return {
      version,
      scenarios: [
        scenario('AWS KMS: AEAD, envelope, wrong associated data, what was altered', async (desk) => {
          const { env, arn } = await awsKey(desk, 'tink-aws');
          await desk.run(python, [program('aws_tink.py')], { env: { ...withRegion(env), KEY_ARN: arn } });
        }),
      ],
    };
  },
};

export const mongodb: Client = {
  name: 'mongodb-csfle',
  from: 'PyPI',
  onlyByHand: true,
  async install() {
    const version = '1.21.2';
    const python = join(await pythonPrograms(`pymongocrypt==${version}`, 'pymongo==4.20.1'), 'python');
    return {
      version: `pymongocrypt ${version}`,
      scenarios: [
        scenario('AWS KMS: a data key, a field sealed, opened by another client, an altered key', async (desk) => {
          const { env, arn } = await awsKey(desk, 'csfle');
          await desk.run(python, [program('aws_csfle.py')], { env: { ...env, KEY_ARN: arn } });
        }),
      ],
    };
  },
};
