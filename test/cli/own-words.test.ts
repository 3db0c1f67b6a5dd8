// Refusals that have the words of Vault on the wire, since its clients expect them, have our own on the command line.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ownWords } from '../../src/cli/own-words.ts';
import { withKey } from './kms.ts';

const bytes = 'A'.repeat(48);

const refusals: readonly (readonly [line: string, stdin: string, said: RegExp])[] = [
  ['encrypt derived', 'x', /^the key needs a context, .*; give --context TEXT/],
  ['encrypt unseal --context a', 'x', /^this key takes no context; bind the message with --associated-data instead/],
  ['decrypt unseal', `vault:v2:${bytes}`, /^the message does not open; it was altered, or .* --associated-data or /],
  ['decrypt envelope', `vault:v1:${bytes}`, /^the message does not open; /],
  ['decrypt unseal', 'x', /^expected an encrypted message, which begins with vault:v; give the whole text that /],
  ['decrypt unseal', 'vault:v2:AAAA', /^expected an encrypted message, got one that is cut off or altered; give the /],
  ['decrypt unseal', 'vault:v2:*', /^expected an encrypted message, got one that is cut off or altered; give the /],
  ['decrypt unseal', `vault:v9:${bytes}`, /^the message names a version that the key does not have; /],
  [
    'decrypt unseal',
    `vault:v1:${bytes}`,
    /^the key refuses the version that made the message .* --min-decrypt-version/,
  ],
  ['verify release --signature x', 'x', /^expected a signature, which begins with vault:v; /],
  ['verify release --signature vault:v1:*', 'x', /^expected a signature, got one that is cut off or altered; /],
  ['verify release --signature vault:v9:AAAA', 'x', /^the signature names a version that the key does not have; /],
  ['verify webhook --mac x', 'x', /^expected a MAC, which begins with vault:v; /],
  ['verify webhook --mac vault:v1:*', 'x', /^expected a MAC, got one that is cut off or altered; /],
  ['encrypt release', 'x', /^a key of the type ed25519 cannot encrypt; see its uses with `kms key show`/],
  ['decrypt release', 'vault:v1:AAAA', /^a key of the type ed25519 cannot decrypt; /],
  ['datakey webhook', '', /^a key of the type hmac cannot encrypt; /],
  ['sign unseal', 'x', /^a key of the type aes256-gcm cannot sign; /],
  ['mac unseal', 'x', /^a key of the type aes256-gcm cannot make MACs; /],
  ['verify unseal --signature vault:v1:AAAA', 'x', /^a key of the type aes256-gcm cannot verify signatures; /],
  ['export unseal --plaintext', '', /^the key may not leave the appliance; only .* --exportable may/],
  ['export unseal', '', /^the managed key unseal may not leave the appliance; only .* --exportable may/],
  ['delete unseal --yes', '', /^unseal is protected from deletion; lift that with `kms key config /],
  ['config unseal --min-decrypt-version 9', '', /^--min-decrypt-version: the latest version is 2, got 9$/],
  ['config unseal --min-encrypt-version 9', '', /^--min-encrypt-version: expected 0, or a version from 2 to 2, got 9$/],
];

const ofVault =
  /cipher: |by policy|error deleting policy|supported for key type|does not support|illegal base64|invalid (?:base64|ciphertext|signature|HMAC)|not exportable|cannot set min|missing 'context'/;

test('no refusal of work with managed keys has the words of Vault', async () => {
  await using d = await withKey(
    'key create unseal',
    'key rotate unseal',
    'key config unseal --min-decrypt-version 2 --yes',
    'key create derived --derived',
    'key create release --type ed25519',
    'key create webhook --type hmac-sha256',
    'key create envelope --type rsa-2048 --use encrypt --use decrypt',
  );
  for (const [line, stdin, said] of refusals) {
    const ran = await d.kms(`key ${line}`, { stdin });
    assert.deepEqual([ran.code, ran.stdout], [1, ''], line);
    assert.match(ran.stderr.trimEnd().replace(/^kms: /, ''), said, line);
    assert.doesNotMatch(ran.stderr, ofVault, line);
  }
});

test('every text of Vault in the code that works with managed keys has words of ours', () => {
  const texts = ['key-in-use', 'key-operations', 'key-signatures', 'key-export', 'managed-keys'].flatMap((file) => {
    const code = readFileSync(new URL(`../../src/core/${file}.ts`, import.meta.url), 'utf8');
    return [...code.matchAll(/(?:refusal\(|KmsError\('\w+', |return )\s*(['"`])(.+?)\1/g)].map(([, , text = '']) =>
      text.replace(/\$\{[^}]*\}/g, '1'),
    );
  });
  const found = texts.filter((text) => ofVault.test(text));
  assert.ok(found.length >= 10, found.join('\n'));
  for (const text of found) assert.ok(ownWords(text), text);
});
