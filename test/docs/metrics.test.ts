// The page about metrics, the alert rules and the dashboard, compared with the metrics that an appliance really
// exposes.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openAppliance } from '../../src/appliance/command-appliance.ts';
import { initAppliance } from '../../src/appliance/init.ts';
import type { Standby } from '../../src/backup/standby.ts';
import { standbyAnswers } from '../../src/backup/standby-answers.ts';
import { writeDriftMetrics } from '../../src/cli/as-code/metrics.ts';
import { emptyBody } from '../../src/http/request.ts';
import { emptyStatus } from '../../src/store/status.ts';
import { Metrics } from '../../src/telemetry/metrics/metrics.ts';
import { type Family, parsePrometheus } from '../support/prometheus-text.ts';

const docs = new URL('../../docs/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, docs), 'utf8');

const exposed = await expose();

/** All metrics of an appliance with every option, after some requests. */
async function expose(): Promise<ReadonlyMap<string, Family>> {
  const dir = mkdtempSync(join(tmpdir(), 'kms-metrics-docs-'));
  const { apiKey } = await initAppliance({ data: join(dir, 'data') });
  const shipping = { to: join(dir, 'shipped'), every: 60_000, window: 1 };
  const appliance = await openAppliance({
    data: join(dir, 'data'),
    metrics: { rings: true },
    copies: { shipping },
    retention: { keep: 86_400_000 },
    streaming: { targets: [{ kind: 'directory', name: join(dir, 'streamed'), path: join(dir, 'streamed') }] },
  });
  const headers = { authorization: `Bearer ${apiKey.key}`, 'content-type': 'application/json' };
  const post = (path: string, body: object) =>
    appliance.app.fetch(
      new Request(`http://kms.test${path}`, { method: 'POST', headers, body: JSON.stringify(body) }),
      {},
    );
  await post('/ks/keyrings', { name: 'payroll' });
  await post('/ks/encrypt', { ringname: 'payroll' });
  await post('/managed-keys', { name: 'unseal' });
  await post('/managed-keys/unseal/encrypt', { items: [{ plaintext: '' }] });
  await post('/auth/workload/login', { token: 'x', role: 'x' });
  const text = await (await appliance.app.fetch(new Request('http://kms.test/metrics', { headers }), {})).text();
  // Metrics of a node, which also has those of its turns.
  const shared = new Metrics(0);
  shared.store('t').turnMeter();
  const store = { ...emptyStatus, activityFaults: [], activityVerified: 0, activityVerifiedAt: undefined };
  const copies = {
    epoch: { number: 1 },
    lastVerified: undefined,
    backupAge: undefined,
    shipping: undefined,
    shippingAge: undefined,
  };
  const none = { streams: [], retention: undefined, space: undefined, approvals: { open: 0, brokenGlass: 0 } };
  const ofNode = parsePrometheus(await shared.text('t', 't', { store, copies, ...none, nodes: 2 }));
  await appliance.close();
  rmSync(dir, { recursive: true, force: true });
  return new Map([...ofNode, ...parsePrometheus(text)]);
}

/** Metrics of a standby. */
const standing = await (async () => {
  const state = { at: '2026-01-02T03:04:05.000Z', transactions: 1 };
  const behind = { transactions: 0, seconds: 0 };
  const status = () => ({ from: '', shipped: state, copied: state, proven: state, behind, hasKey: true });
  // Cast: only `status` is read.
  const answers = standbyAnswers({ status } as unknown as Standby, async () => {});
  const request = { method: 'GET', path: '/metrics', search: '', headers: {}, body: emptyBody };
  const { content } = (await answers(request)).outcome;
  return parsePrometheus(typeof content === 'string' ? content : '');
})();

/** Names of labels, without `le`, which every histogram has. */
function labelsOf(family: Family): string[] {
  return [...new Set(family.samples.flatMap(({ labels }) => Object.keys(labels)))]
    .filter((each) => each !== 'le')
    .sort();
}

test('the page lists each metric that is exposed, with its type and labels, and no other', () => {
  const rows = [...read('metrics.md').matchAll(/^\| `(\w+)` \| (\w+) \|(.*?)\| (.+) \|$/gm)];
  const listed = rows.map(([, name = '', type, labels = '']) => [
    name,
    type,
    [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).sort(),
  ]);
  const real = [...exposed.values()].map((family) => [family.name, family.type, labelsOf(family)]);
  const byName = (one: unknown[], other: unknown[]): number => String(one[0]).localeCompare(String(other[0]));
  assert.deepEqual(listed.sort(byName), real.sort(byName));
});

test('and each metric of a standby', () => {
  const listed = [...read('metrics.md').matchAll(/^\| `(kms_standby_\w+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(listed.sort(), [...standing.keys()].sort());
});

/** Metrics that a look for drift writes. */
const drift = await (async () => {
  const dir = mkdtempSync(join(tmpdir(), 'kms-drift-docs-'));
  await writeDriftMetrics(join(dir, 'kms.prom'), { steps: [], kept: [] }, 0);
  const text = readFileSync(join(dir, 'kms.prom'), 'utf8');
  rmSync(dir, { recursive: true });
  return parsePrometheus(text);
})();

test('and each metric of a look for drift', () => {
  const listed = [...read('metrics.md').matchAll(/^\| `(kms_drift_\w+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(listed.sort(), [...drift.keys()].sort());
});

/** Labels that Prometheus adds to every series. */
const added = ['job', 'instance'];
const words = new Set(
  'sum avg max min topk by without and or unless on ignoring rate increase changes time histogram_quantile label_values'.split(
    ' ',
  ),
);

/** Checks that all metrics and labels in an expression exist; returns the metrics. */
function checkExpression(expression: string): string[] {
  const found: string[] = [];
  let balance = 0;
  for (const character of expression) {
    if (character === '(') balance++;
    if (character === ')') balance--;
    assert.ok(balance >= 0, expression);
  }
  assert.equal(balance, 0, expression);
  const labels = new Set(added);
  const groups = [...expression.matchAll(/\b(?:by|without|on) \(([^)]*)\)/g)].map(([, names = '']) => names);
  const bare = expression.replace(/\b(?:by|without|on) \([^)]*\)/g, ' ').replace(/\[[^\]]*\]/g, ' ');
  const asked: [metric: string, label: string][] = [];
  for (const [, name = '', selector = ''] of bare.matchAll(/([a-zA-Z_]\w*)(?:\{([^}]*)\})?/g)) {
    if (words.has(name) || isInString(bare, name, selector)) continue;
    const family = familyOf(name, expression);
    found.push(name);
    const own = name === 'up' ? [] : family ? labelsOf(family) : [];
    for (const label of own) labels.add(label);
    if (name.endsWith('_bucket')) labels.add('le');
    for (const part of selector === '' ? [] : selector.split(/,(?=\w+[=!])/)) {
      const [, label] = /^(\w+)(?:=|!=|=~|!~)"[^"]*"$/.exec(part) ?? [];
      assert.ok(label !== undefined, `${expression}: ${part}`);
      asked.push([name, label]);
      assert.ok([...own, ...added].includes(label), `${expression}: ${name} has no label ${label}`);
    }
  }
  for (const label of groups.flatMap((names) => names.split(/,\s*/))) {
    assert.ok(labels.has(label), `${expression}: no label ${label}`);
  }
  assert.ok(found.length > 0, expression);
  return found;
}

/** Second arguments of `label_values` are labels. */
function isInString(expression: string, name: string, selector: string): boolean {
  return selector === '' && new RegExp(`label_values\\(.*, ${name}\\)$`).test(expression);
}

function familyOf(name: string, expression: string): Family | undefined {
  if (name === 'up') return undefined;
  const exact = exposed.get(name) ?? standing.get(name) ?? drift.get(name);
  if (exact && exact.type !== 'histogram') return exact;
  const histogram = exposed.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  assert.ok(histogram?.type === 'histogram' && histogram.name !== name, `${expression}: no metric ${name}`);
  return histogram;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly title: string;
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[];
  };
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
}

test('the dashboard can be imported: ids, places, a data source that is chosen', () => {
  const dashboard: Dashboard = JSON.parse(read('grafana-dashboard.json'));
  assert.ok(!('id' in dashboard), 'Grafana gives the id');
  assert.ok(dashboard.title !== '' && /^[\w-]{1,40}$/.test(dashboard.uid) && dashboard.schemaVersion >= 39);
  const { panels, templating } = dashboard;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  assert.deepEqual(
    templating.list.map(({ name, type }) => [name, type]),
    [
      ['datasource', 'datasource'],
      ['job', 'query'],
      ['instance', 'query'],
    ],
  );
  const taken = new Set<string>();
  for (const { type, title, gridPos, datasource, targets = [] } of panels) {
    assert.ok(gridPos.x + gridPos.w <= 24, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!taken.has(`${x} ${y}`), `${title} lies on another panel`);
        taken.add(`${x} ${y}`);
      }
    }
    if (type === 'row') continue;
    assert.ok(targets.length > 0, title);
    for (const each of [datasource, ...targets.map((target) => target.datasource)]) {
      assert.match(each?.uid ?? '', /^\$\{datasource\}$/, title);
    }
  }
});

test('the dashboard asks for metrics and labels that there are, and shows every metric', () => {
  const { panels, templating, annotations }: Dashboard = JSON.parse(read('grafana-dashboard.json'));
  const expressions = [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...annotations.list.map(({ expr }) => expr),
    ...templating.list.flatMap(({ definition }) => definition ?? []),
  ];
  const shown = new Set(
    expressions.flatMap((each) => checkExpression(each.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'kms'))),
  );
  const whole = [...exposed.values()].map(({ name, type }) => (type === 'histogram' ? `${name}_bucket` : name));
  const hidden = whole.filter((name) => !shown.has(name));
  assert.deepEqual(hidden, []);
});

test('the alert rules ask for metrics and labels that there are, and each says what is the matter', () => {
  const text = read('prometheus-alerts.yml');
  const rules = text.split(/^ {6}- alert: /m).slice(1);
  assert.ok(rules.length >= 8);
  const names = rules.map((rule) => /^\w+/.exec(rule)?.[0]);
  assert.equal(new Set(names).size, rules.length);
  for (const rule of rules) {
    const [, expression = ''] = /^ {8}expr: (.+)$/m.exec(rule) ?? [];
    checkExpression(expression);
    assert.match(rule, /^ {8}labels: \{ severity: (?:critical|warning) \}$/m);
    assert.match(rule, /^ {10}summary: "[^"]+"$/m);
  }
  for (const rule of ['KmsSealedOrDown', 'KmsBackupTooOld', 'KmsDiskFillingUp', 'KmsErrors', 'KmsCheckpointFailing']) {
    assert.ok(names.includes(rule), rule);
  }
});

test('an expression with a mistake is found', () => {
  for (const wrong of [
    'kms_request_total',
    'rate(kms_requests_total{acton="login"}[5m])',
    'sum by (verdikt) (rate(kms_requests_total[5m]))',
    'rate(kms_commit_transactions[5m])',
    'rate(kms_requests_total[5m]',
    '1 + 1',
  ]) {
    assert.throws(() => checkExpression(wrong), assert.AssertionError);
  }
});
