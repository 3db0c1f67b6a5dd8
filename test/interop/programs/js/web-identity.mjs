// AWS's SDK for JavaScript with the token of a file instead of a stored secret.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MODULES}/`);
const aws = require('@aws-sdk/client-kms');
const kms = new aws.KMSClient({});
const KeyId = process.env.KEY_ALIAS;
const { CiphertextBlob, Plaintext } = await kms.send(new aws.GenerateDataKeyCommand({ KeyId, KeySpec: 'AES_256' }));
const opened = await kms.send(new aws.DecryptCommand({ CiphertextBlob }));
assert.deepEqual(opened.Plaintext, Plaintext);
await assert.rejects(kms.send(new aws.CreateKeyCommand({})), { name: 'AccessDeniedException' });
