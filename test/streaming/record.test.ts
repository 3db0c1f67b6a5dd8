// The formats in which records are sent: lines that are those of an export plus the tenant, and syslog messages whose
// header, structured data and framing hold, whatever a record contains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { exportLine } from '../../src/core/activity.ts';
import { canonicalJson } from '../../src/crypto/canonical-json.ts';
import type { ActivityRecord, ChainedActivity } from '../../src/store/port.ts';
import {
  headerWord,
  octetCounted,
  type StreamedTenant,
  streamedLine,
  syslogMessage,
} from '../../src/telemetry/streaming/record.ts';
import { takeMessages } from '../support/syslog-server.ts';

const tenant: StreamedTenant = { id: 'tenant_01', name: 'blue.team' };
const hash = 'LBluuPZydXbyk7ub9gXcy032uxQX55VCBycxdZaTRZQ';

function chained(change: Partial<ActivityRecord> = {}): ChainedActivity {
  const record: ActivityRecord = {
    seq: 17,
    id: 'act_01',
    createdAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    keyid: 'apik_1',
    action: 'keyring.encrypt',
    ringname: 'payroll',
    validAction: true,
    status: 200,
    props: {},
    ...change,
  };
  return { record, line: canonicalJson({ ...record }), hash };
}

test('a line is that of the export, with the tenant in front', () => {
  const each = chained({ props: { a: 'x"y' } });
  const line = streamedLine(tenant, each);
  assert.ok(line.startsWith(`{"tenant":"blue.team","tenantId":"tenant_01","hash":"${hash}",`));
  assert.ok(line.endsWith('}\n'));
  assert.equal(line.replace('"tenant":"blue.team","tenantId":"tenant_01",', ''), exportLine(each.line, hash));
  assert.deepEqual(JSON.parse(line), { tenant: 'blue.team', tenantId: 'tenant_01', hash, ...each.record });
});

test('a syslog message, letter by letter', () => {
  const each = chained();
  assert.equal(
    syslogMessage(tenant, each, 'host.example'),
    '<110>1 2026-01-02T03:04:05.678Z host.example kms - activity ' +
      `[kms@32473 tenant="blue.team" seq="17" action="keyring.encrypt" verdict="granted" id="act_01" hash="${hash}"] ` +
      streamedLine(tenant, each).trimEnd(),
  );
  assert.match(syslogMessage(tenant, chained({ validAction: false }), '-'), /^<108>1 .* verdict="denied" /);
});

test('times that no date can say are left out', () => {
  for (const createdAt of [-1, 253_402_300_800_000, 1e300]) {
    assert.match(syslogMessage(tenant, chained({ createdAt }), '-'), /^<110>1 - - kms /);
  }
  assert.match(syslogMessage(tenant, chained({ createdAt: 253_402_300_799_999 }), '-'), /1 9999-12-31T23:59:59\.999Z /);
});

test('a word of a header is printable ASCII of at most 255 characters', () => {
  assert.equal(headerWord('kms-1.example'), 'kms-1.example');
  assert.equal(headerWord('bücher büro\n'), 'bcherbro');
  assert.equal(headerWord(''), '-');
  assert.equal(headerWord('\u00fc '), '-');
  assert.equal(headerWord('x'.repeat(300)).length, 255);
});

/** RFC 5424 §6 as far as these messages need it; PARAM-VALUE as in the RFC, with its required escapes. */
const grammar =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
  /^<(\d{1,3})>1 (-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([!-~]{1,255}) kms - activity \[kms@32473((?: [a-z]+="(?:[^"\\\]\x00-\x1f]|\\["\\\]])*")+)\] (\{.*\})$/s;

const anyText = fc.string({ unit: 'binary', maxLength: 400 });

test('whatever a record says, the message keeps its form and its frame', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ action: anyText, note: anyText, keyid: anyText }), { maxLength: 5 }), (given) => {
      const messages = given.map(({ action, note, keyid }) =>
        syslogMessage(
          tenant,
          chained({ action: action.toWellFormed(), keyid: keyid.toWellFormed(), props: { note: note.toWellFormed() } }),
          'h',
        ),
      );
      for (const message of messages) {
        const [, , , , params = '', json = ''] = grammar.exec(message) ?? assert.fail(message);
        assert.equal(params.match(/ [a-z]+="/g)?.length, 6, message);
        assert.ok(!json.includes('\n'));
        JSON.parse(json);
      }
      const frames = Buffer.from(messages.map(octetCounted).join(''));
      const { messages: taken, rest } = takeMessages(frames);
      assert.deepEqual(taken, messages);
      assert.equal(rest.length, 0);
    }),
    { numRuns: 300 },
  );
});

test('what a receiver could take for the end of a parameter or a message is escaped, or a space', () => {
  const message = syslogMessage(tenant, chained({ action: 'a"b\\c]d\ne\u0000f\u0085g' }), 'h');
  assert.ok(message.includes(' action="a\\"b\\\\c\\]d e f g" '), message);
  const long = syslogMessage(tenant, chained({ action: 'x'.repeat(5000) }), 'h');
  assert.match(long, / action="x{256}" /);
  assert.ok(long.includes(`"action":"${'x'.repeat(5000)}"`), 'the JSON has it whole');
});
