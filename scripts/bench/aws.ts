// Encrypts, decrypts and data keys per second at the listener for clients of AWS KMS, beside a bare route on the same
// runtime, in turns; and the time that the check of a signature takes.
import { execFileSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hmacSha256 } from '../../src/crypto/fast-hash.ts';
import { isSigned, readAuthorization, signingKey } from '../../src/dialects/aws/sigv4.ts';
import { kms, makeAppliance } from './appliance.ts';
import { goal, median, row, short } from './figures.ts';
import { inTurns, type MeasuredSide, mean } from './load.ts';
import { cpuSeconds, start } from './process.ts';

/** Goals, as a share of the bare route's rate. */
const wanted: Readonly<Record<string, number>> = { Encrypt: 0.3, GenerateDataKey: 0.3 };
const checks = 2000;

interface AccessKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

type Headers = Readonly<Record<string, string>>;

/** @param seconds of each measurement. @param rounds in which each operation is measured once at each. */
export async function measureAws(seconds: number, rounds: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'kms-bench-aws-'));
  const { data } = makeAppliance(join(home, 'data'));
  const own = (...args: string[]): string =>
    execFileSync(kms, ['--data', data, ...args], { encoding: 'utf8', stdio: 'pipe' });
  own('key', 'create', 'bench');
  own('account', 'create', 'bench');
  own('apikey', 'create', '--account', 'bench', '--name', 'bench', '--without-secret', '--flag', 'key.bench.*');
  const key: AccessKey = JSON.parse(own('apikey', 'proof', 'add', 'bench', 'aws', '--json'));
  const listen = ['--listen', '127.0.0.1:0', '--aws-listen', '127.0.0.1:0'];
  const served = await start(0, kms, ['--data', data, 'serve', ...listen], /AWS KMS: listening on (\S+)/);
  const ask = async (operation: string, input: object): Promise<Record<string, string>> => {
    const body = JSON.stringify(input);
    const headers = signed(key, new URL(served.match).host, operation, body);
    const response = await fetch(served.match, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`${operation}: ${response.status} ${await response.text()}`);
    return JSON.parse(await response.text());
  };
  const KeyId = 'alias/bench';
  const message = { KeyId, Plaintext: Buffer.alloc(32, 1).toString('base64') };
  const { CiphertextBlob } = await ask('Encrypt', message);
  const operations = { Encrypt: message, Decrypt: { CiphertextBlob }, GenerateDataKey: { KeyId, KeySpec: 'AES_256' } };
  const answers: Record<string, object> = {};
  for (const [name, input] of Object.entries(operations)) answers[`/${name}`] = await ask(name, input);
  const bareRoute = [join(import.meta.dirname, 'bare-route.ts'), JSON.stringify(answers)];
  const bare = await start(0, process.execPath, bareRoute, /listening on (\S+)/);

  console.log(`\nAWS KMS: 64 connections, ${rounds} rounds of ${seconds} s; a second over all of them, medians else`);
  row('', ...['kms', 'bare'].flatMap((side) => [`${side} req/s`, 'p50 ms', 'p99 ms', 'CPU µs']), 'ratio');
  for (const [name, input] of Object.entries(operations)) {
    const body = JSON.stringify(input);
    // The date of one signature holds for longer than it is measured.
    const headers = signed(key, new URL(served.match).host, name, body);
    const sides = [
      { url: served.match, headers, body, cpu: () => cpuSeconds(served.child.pid) },
      { url: `${bare.match}/${name}`, headers, body, cpu: () => cpuSeconds(bare.child.pid) },
    ];
    const [ours = [], theirs = []] = await inTurns(sides, seconds, rounds);
    const ratio = mean(ours, 'perSecond') / mean(theirs, 'perSecond');
    row(name, ...cells(ours), ...cells(theirs), ratio.toFixed(3));
    const least = wanted[name];
    if (least !== undefined) goal(`AWS KMS: ${name}, of the bare route`, ratio, least, 'at least');
  }
  await served.stop();
  await bare.stop();
  rmSync(home, { recursive: true });
  measureCheck();
}

function cells(of: readonly MeasuredSide[]): string[] {
  const middle = (field: 'p50' | 'p99') => short(median(of.map((each) => each[field])));
  return [short(mean(of, 'perSecond')), middle('p50'), middle('p99'), median(of.map(({ cpu }) => cpu)).toFixed(1)];
}

/** Processor time of the check from the header to the answer, with the key of the day derived each time. */
function measureCheck(): void {
  const key = { accessKeyId: `KMS${'A'.repeat(17)}`, secretAccessKey: 'b'.repeat(40) };
  const text = JSON.stringify({ KeyId: 'alias/bench', Plaintext: Buffer.alloc(32, 1).toString('base64') });
  const headers = signed(key, '127.0.0.1:4599', 'Encrypt', text);
  const request = { method: 'POST', path: '/', search: '', headers };
  const body = new TextEncoder().encode(text);
  const times = Array.from({ length: 21 }, () => {
    const before = process.cpuUsage();
    for (let n = 0; n < checks; n++) {
      const read = readAuthorization(request);
      if (
        typeof read === 'string' ||
        !isSigned(request, read, hmacSha256(signingKey(key.secretAccessKey, read)), body)
      ) {
        throw new Error('expected a valid signature');
      }
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / checks;
  });
  goal('check of a signature of AWS’s clients', median(times), 60, 'at most', ' µs');
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** The headers of a request as boto3 signs it. */
function signed({ accessKeyId, secretAccessKey }: AccessKey, host: string, operation: string, body: string): Headers {
  const date = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const headers: Headers = {
    'content-type': 'application/x-amz-json-1.1',
    host,
    'x-amz-date': date,
    'x-amz-target': `TrentService.${operation}`,
  };
  const names = Object.keys(headers).join(';');
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}`);
  const canonical = ['POST', '/', '', ...lines, '', names, hash(body)].join('\n');
  const scope = [date.slice(0, 8), 'us-east-1', 'kms', 'aws4_request'];
  const signing = scope.reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const toSign = ['AWS4-HMAC-SHA256', date, scope.join('/'), hash(canonical)].join('\n');
  const credential = [accessKeyId, ...scope].join('/');
  const signature = hmac(signing, toSign).toString('hex');
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`;
  return { ...headers, authorization };
}
