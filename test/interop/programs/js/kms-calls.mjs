// Calls AWS KMS through AWS's SDK for JavaScript: keys, messages, data keys, a signature, pages, errors, and a clock that
// is twenty minutes slow.
import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MODULES}/`);
const aws = require('@aws-sdk/client-kms');
const kms = new aws.KMSClient({});
const ask = (name, input = {}) => kms.send(new aws[`${name}Command`](input));
const bytes = (text) => new TextEncoder().encode(text);
const refused = async (name, input, kind) => {
  await assert.rejects(ask(name, input), (error) => error instanceof aws[kind] || error.name === kind);
};

const { KeyMetadata: key } = await ask('CreateKey', { Description: 'sdk' });
assert.ok(key.CreationDate instanceof Date && Math.abs(key.CreationDate - Date.now()) < 600_000);
await ask('CreateAlias', { AliasName: 'alias/js', TargetKeyId: key.KeyId });
const EncryptionContext = { app: 'pay' };
const { CiphertextBlob } = await ask('Encrypt', { KeyId: 'alias/js', Plaintext: bytes('hello'), EncryptionContext });
const opened = await ask('Decrypt', { CiphertextBlob, EncryptionContext });
assert.equal(new TextDecoder().decode(opened.Plaintext), 'hello');
assert.equal(opened.KeyId, key.Arn);
await refused('Decrypt', { CiphertextBlob }, 'InvalidCiphertextException');
const data = await ask('GenerateDataKey', { KeyId: key.Arn, KeySpec: 'AES_256' });
const again = await ask('Decrypt', { CiphertextBlob: data.CiphertextBlob });
assert.deepEqual(again.Plaintext, data.Plaintext);

const signs = { KeySpec: 'ECC_NIST_P256', KeyUsage: 'SIGN_VERIFY' };
const { KeyMetadata: signer } = await ask('CreateKey', signs);
const what = { KeyId: signer.KeyId, Message: bytes('release'), SigningAlgorithm: 'ECDSA_SHA_256' };
const { Signature } = await ask('Sign', what);
const { PublicKey } = await ask('GetPublicKey', { KeyId: signer.KeyId });
const spki = createPublicKey({ key: Buffer.from(PublicKey), format: 'der', type: 'spki' });
assert.ok(verify('sha256', bytes('release'), spki, Signature));
await refused('Verify', { ...what, Message: bytes('other'), Signature }, 'KMSInvalidSignatureException');

const seen = [];
for await (const page of aws.paginateListKeys({ client: kms, pageSize: 1 }, {}))
  seen.push(...page.Keys.map(({ KeyArn }) => KeyArn));
assert.ok(seen.includes(key.Arn) && seen.includes(signer.Arn) && new Set(seen).size === seen.length);
await refused('DescribeKey', { KeyId: 'alias/nothing' }, 'NotFoundException');
await ask('DisableKey', { KeyId: key.KeyId });
await refused('Encrypt', { KeyId: key.KeyId, Plaintext: bytes('x') }, 'DisabledException');

// The answer's date tells the client how wrong its clock is.
const slow = new aws.KMSClient({ systemClockOffset: -1_200_000 });
const { Plaintext } = await slow.send(new aws.GenerateRandomCommand({ NumberOfBytes: 9 }));
assert.equal(Plaintext.length, 9);
const secretAccessKey = 'x'.repeat(40);
const stranger = new aws.KMSClient({ credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey } });
await assert.rejects(stranger.send(new aws.ListKeysCommand({})), { name: 'InvalidSignatureException' });
