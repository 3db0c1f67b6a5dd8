// The label of an appliance: told by /readyz and the overview, and on every page of the console, sealed or not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLabel } from '../../src/model/label.ts';
import { testAppliance } from '../support/appliance.ts';

test('a label is 1 to 24 printable characters', () => {
  for (const good of ['p', 'prod', 'prod eu-1', 'Übung', '生産', '<b>&"', '🔴'.repeat(24), 'x'.repeat(24)]) {
    assert.ok(isLabel(good), good);
  }
  for (const wrong of [
    '',
    ' ',
    ' a',
    'a ',
    'x'.repeat(25),
    'a\nb',
    'a\tb',
    'a\u202eb',
    'a\u2028b',
    '\u00a0',
    '\ud800',
  ]) {
    assert.ok(!isLabel(wrong), JSON.stringify(wrong));
  }
});

const label = { text: 'prod <1>', colour: 'red' } as const;
const html = { headers: { accept: 'text/html' } };

test('it is told to monitoring, to callers, and to people', async () => {
  const a = await testAppliance({ label });
  assert.deepEqual((await a.call('GET', '/readyz')).body, { status: 'ready', label });
  assert.deepEqual((await a.call('GET', '/system/overview')).body.readiness.label, label);
  for (const path of ['/console', '/console/invite', '/console/nothing']) {
    const { text } = await a.call('GET', path, undefined, html);
    assert.match(text, /<title>[^<]+ – prod &#60;1&#62;<\/title>/, path);
    assert.match(text, /<strong data-label="red" title="prod &#60;1&#62;">prod &#60;1&#62;<\/strong><\/header>/, path);
  }
  const failing = await testAppliance({ label: { text: 'x' }, ready: () => ({ ok: false, reason: 'no room' }) });
  const { status, body } = await failing.call('GET', '/readyz');
  assert.deepEqual([status, body], [503, { message: 'no room', label: { text: 'x' } }]);
  assert.match((await failing.call('GET', '/console', undefined, html)).text, /<strong data-label="grey"/);
});

test('sealed, it is told too', async () => {
  const a = await testAppliance({ label, sealed: () => true });
  const { status, body } = await a.call('GET', '/readyz');
  assert.deepEqual([status, body], [503, { message: 'the appliance is sealed', sealed: true, label }]);
  assert.match((await a.call('GET', '/console', undefined, html)).text, /<strong data-label="red"/);
});

test('without one there is none', async () => {
  const a = await testAppliance();
  assert.deepEqual((await a.call('GET', '/readyz')).body, { status: 'ready' });
  assert.ok(!('label' in (await a.call('GET', '/system/overview')).body.readiness));
  assert.doesNotMatch((await a.call('GET', '/console', undefined, html)).text, /data-label/);
});
