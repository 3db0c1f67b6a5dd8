// Attribution of the executable's contents: nothing is left out, every licence is an allowed one, and the list is valid
// and reproducible.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { attributionOfSources } from '../../build/bundle.ts';
import { desk } from '../cli/kms.ts';

const permissive = [
  'MIT',
  'MIT-0',
  '0BSD',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'blessing',
  'ISC AND MIT',
];

interface Part {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly text: string;
}

interface Sbom {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly serialNumber?: string;
  readonly metadata: {
    readonly timestamp?: string;
    readonly component: { readonly name: string; readonly purl: string };
  };
  readonly components: readonly {
    readonly name: string;
    readonly group?: string;
    readonly version: string;
    readonly purl: string;
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

const first = await attributionOfSources();
const parts: readonly Part[] = JSON.parse(first.thirdParties);
const sbom: Sbom = JSON.parse(first.sbom);

test('every dependency of the product is named with a permissive licence and its text', () => {
  const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const names = parts.map(({ name }) => name);
  for (const name of Object.keys(dependencies)) assert.ok(names.includes(name), name);
  for (const name of ['Node.js', 'SQLite', 'Lucide']) assert.ok(names.includes(name), name);
  for (const { name, version, license, text } of parts) {
    assert.ok(permissive.includes(license), `${name}: ${license}`);
    assert.match(version, /^\d+\.\d+/, name);
    assert.ok(text.length > 200, name);
  }
  assert.equal(parts.find(({ name }) => name === 'Node.js')?.version, process.versions.node);
});

test('nothing that only development needs is in it', () => {
  for (const name of ['esbuild', 'typescript', 'tsx', '@cyclonedx/cyclonedx-library', 'fast-check']) {
    assert.ok(!parts.some((part) => part.name === name), name);
  }
});

test('the list of components is CycloneDX, complete, with the digests of the lock file, and without a time or a number', () => {
  assert.deepEqual([sbom.bomFormat, sbom.specVersion], ['CycloneDX', '1.6']);
  assert.deepEqual([sbom.serialNumber, sbom.metadata.timestamp], [undefined, undefined]);
  assert.equal(sbom.metadata.component.name, 'kms');
  assert.deepEqual(
    sbom.components
      .map(({ group, name, version }) => `${group === undefined ? '' : `${group}/`}${name} ${version}`)
      .sort(),
    parts.map(({ name, version }) => `${name} ${version}`).sort(),
  );
  const hono = sbom.components.find(({ name }) => name === 'hono');
  assert.match(hono?.purl ?? '', /^pkg:npm\/hono@\d/);
  const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'));
  const content = hono?.hashes?.[0]?.content ?? '';
  assert.equal(`sha512-${Buffer.from(content, 'hex').toString('base64')}`, packages['node_modules/hono'].integrity);
  const product = sbom.dependencies.find(({ ref }) => ref.startsWith('kms@'));
  assert.equal(product?.dependsOn?.length, parts.length);
});

test('it is the same each time', async () => {
  assert.deepEqual(await attributionOfSources(), first);
});

test('kms licenses', async () => {
  await using d = await desk();
  const { stdout, code } = await d.kms('licenses');
  assert.equal(code, 0);
  for (const { name, version, text } of parts) {
    assert.ok(stdout.includes(`  ${name} ${version}: `), name);
    assert.ok(stdout.includes(text.trimEnd()), name);
  }
  assert.equal((await d.kms('licenses --sbom')).stdout, first.sbom);
  const { data } = await d.json<{ data: readonly Part[] }>('licenses --json');
  assert.equal(data.length, parts.length);
});
