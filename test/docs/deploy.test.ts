// Files to deploy the appliance with: their variables are options, and the plugin's pod is that of the page about it. A
// real API server's word on them is in test/interop.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { settings } from '../../src/cli/grammar/serving.ts';

const docs = new URL('../../docs/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, docs), 'utf8');
const namesIn = (folder: string): string[] => readdirSync(new URL(folder, docs)).map((name) => folder + name);
const manifests = namesIn('deploy/kubernetes/');

const variableOf = (setting: string): string =>
  `KMS_${setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
const serving = new Set([...settings.keys()].map(variableOf));
/** Variables of commands that ask a server. */
const asking = ['KMS_SERVER', 'KMS_API_KEY', 'KMS_API_KEY_FILE', 'KMS_CA_FILE', 'KMS_PRIVATE_KEY'];

test('every variable in the files is one that a command reads', () => {
  for (const path of [...namesIn('deploy/chart/templates/'), ...manifests]) {
    for (const [variable] of read(path).matchAll(/\bKMS_[A-Z_]+/g)) {
      assert.ok(serving.has(variable) || asking.includes(variable), `${path}: ${variable}`);
    }
  }
});

test('every manifest is YAML with kinds and names', () => {
  for (const path of manifests) {
    for (const document of parseAllDocuments(read(path), { version: '1.1' })) {
      assert.deepEqual(document.errors, [], path);
      const { kind, apiVersion, metadata } = document.toJS();
      assert.ok(kind && apiVersion && metadata.name, path);
    }
  }
});

test("the plugin's pod is that of the page", () => {
  const pod = read('deploy/kubernetes/plugin.yaml').replace(/^#.*\n/, '');
  assert.ok(read('kubernetes.md').includes(pod));
});
