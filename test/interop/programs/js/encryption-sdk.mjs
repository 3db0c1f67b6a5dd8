// AWS's Encryption SDK for JavaScript: an envelope under a data key of the appliance, with its context.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MODULES}/`);
const sdk = require('@aws-crypto/client-node');
const { encrypt, decrypt } = sdk.buildClient(sdk.CommitmentPolicy.REQUIRE_ENCRYPT_REQUIRE_DECRYPT);
const clientProvider = sdk.getClient(sdk.KMS, {
  endpoint: process.env.AWS_ENDPOINT_URL_KMS,
  credentials: { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY },
});
const keyringOf = (generatorKeyId) => new sdk.KmsKeyringNode({ generatorKeyId, clientProvider });
const encryptionContext = { app: 'pay' };
const text = 'hunter2 '.repeat(1000);
const { result } = await encrypt(keyringOf(process.env.KEY_ARN), text, { encryptionContext });
const { plaintext, messageHeader } = await decrypt(keyringOf(process.env.KEY_ARN), result);
assert.equal(plaintext.toString(), text);
assert.equal(messageHeader.encryptionContext.app, 'pay');
const discovering = new sdk.KmsKeyringNode({ discovery: true, clientProvider });
assert.equal((await decrypt(discovering, result)).plaintext.toString(), text);
await assert.rejects(decrypt(keyringOf(process.env.OTHER_ARN), result));
result[result.length >> 1] ^= 1;
await assert.rejects(decrypt(keyringOf(process.env.KEY_ARN), result));
if (process.env.FROM_PYTHON) {
  const { plaintext: theirs } = await decrypt(
    keyringOf(process.env.KEY_ARN),
    Buffer.from(process.env.FROM_PYTHON, 'base64'),
  );
  assert.equal(theirs.toString(), 'from Python');
}
