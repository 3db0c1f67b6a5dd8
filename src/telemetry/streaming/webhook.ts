// A webhook: batches of JSON Lines, each signed by the Standard Webhooks specification (HMAC-SHA256 over id, time and
// body), sent one after the other. A 2xx means that the batch has arrived; after anything else it is sent again under
// the same id.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { concatBytes, toBase64, utf8 } from '../../crypto/bytes.ts';
import { hmacSha256 } from '../../crypto/fast-hash.ts';
import { trustSystem } from '../../platform/authorities.ts';
import { version } from '../../version.ts';
import { type Batch, DeliveryFault, networkFault, type Receiver } from './receiver.ts';
import { streamedLine } from './record.ts';
import type { WebhookTarget } from './target.ts';

interface WebhookSettings {
  /** PEM of the authorities to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** At least one; each of them signs. */
  readonly secrets: readonly Uint8Array[];
  /** In epoch milliseconds. */
  readonly now: () => number;
}

/** Milliseconds to wait for an answer. */
const answerTimeout = 30_000;
/** Bytes of an answer's body that are read and discarded before the connection is closed. */
const mostAnswer = 64 * 1024;
/** Limit of 1xx answers ahead of the final one: reading them costs as much as serving. */
const mostHints = 16;

export class WebhookReceiver implements Receiver {
  readonly #url: URL;
  readonly #now: () => number;
  readonly #signers: readonly ((message: Uint8Array) => Uint8Array)[];
  readonly #agent: HttpAgent;
  readonly #trustsSystem: boolean;
  readonly #send: typeof httpRequest;
  #underWay = new AbortController();

  constructor({ url }: WebhookTarget, { ca, secrets, now }: WebhookSettings) {
    this.#url = new URL(url);
    this.#now = now;
    this.#signers = secrets.map(hmacSha256);
    const pool = { keepAlive: true, maxSockets: 1 };
    const isHttps = this.#url.protocol === 'https:';
    this.#trustsSystem = isHttps && ca === undefined;
    if (isHttps) {
      const trust = { minVersion: 'TLSv1.2' as const, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) };
      this.#agent = new HttpsAgent({ ...pool, ...trust });
      this.#send = httpsRequest;
    } else {
      this.#agent = new HttpAgent(pool);
      this.#send = httpRequest;
    }
  }

  async ready(): Promise<void> {
    if (this.#trustsSystem) trustSystem();
  }

  async send({ tenant, records }: Batch): Promise<void> {
    const body = utf8(records.map((each) => streamedLine(tenant, each)).join(''));
    const [first] = records;
    const last = records.at(-1);
    // The hash of the last record covers all before it; the client that causes a record cannot choose any part of the
    // id.
    const id = `${tenant.id}_${first?.record.seq}_${last?.record.seq}_${last?.hash}`;
    await this.deliver(id, 'application/jsonl', body);
  }

  /** Sends one signed message. Throws `DeliveryFault` unless the answer is 2xx. */
  async deliver(id: string, type: string, body: Uint8Array): Promise<void> {
    const timestamp = String(Math.floor(this.#now() / 1000));
    const signed = concatBytes(utf8(`${id}.${timestamp}.`), body);
    const signatures = this.#signers.map((sign) => `v1,${toBase64(sign(signed))}`);
    const status = await this.#post(body, {
      'content-type': type,
      'content-length': body.length,
      'user-agent': `kms/${version}`,
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures.join(' '),
    });
    if (status < 200 || status > 299) throw new DeliveryFault('answer', `it answered ${status}`);
  }

  drop(): void {
    this.#underWay.abort();
    this.#underWay = new AbortController();
    this.#agent.destroy();
  }

  /** Returns the status. */
  async #post(body: Uint8Array, headers: Readonly<Record<string, string | number>>): Promise<number> {
    const signal = AbortSignal.any([this.#underWay.signal, AbortSignal.timeout(answerTimeout)]);
    let isStale = false;
    const once = (): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = this.#send(this.#url, { method: 'POST', agent: this.#agent, headers, signal }, (answer) =>
          readAway(answer, () => resolve(answer.statusCode ?? 0), reject),
        );
        request.on('error', (error) => {
          isStale = request.reusedSocket;
          reject(error);
        });
        let hints = 0;
        request.on('information', () => {
          if (++hints > mostHints) request.destroy(new DeliveryFault('answer', 'it answered 1xx again and again'));
        });
        // An unsolicited 101: Node reports it only to an `upgrade` listener.
        request.on('upgrade', ({ statusCode }, socket) => {
          socket.destroy();
          resolve(statusCode ?? 0);
        });
        // Whatever happened to the request, it ends at its timeout.
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        request.end(body);
      });
    try {
      // The receiver may have closed a kept connection at that moment, which is not a failure.
      return await once().catch((error: unknown) => (isStale && !signal.aborted ? once() : Promise.reject(error)));
    } catch (error) {
      throw networkFault(signal.aborted && signal.reason instanceof Error ? signal.reason : error);
    }
  }
}

/** Only the status counts; the body is read so that the connection can be reused. */
function readAway(answer: IncomingMessage, done: () => void, failed: (error: unknown) => void): void {
  let length = 0;
  answer.on('data', (piece: Uint8Array) => {
    length += piece.length;
    if (length <= mostAnswer) return;
    done();
    answer.destroy();
  });
  answer.on('end', done);
  answer.on('error', failed);
}
