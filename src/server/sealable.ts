// An appliance that can be sealed and unsealed while its sockets stay open. While it is sealed, an app without tenants answers: health, the
// state of the seal, the steps to open it, and 503 to everything else.
import { setTimeout } from 'node:timers/promises';
import type { SealStatus, UnsealStep } from '../api/seal.ts';
import { localCaller } from '../core/credential.ts';
import { KmsError } from '../errors.ts';
import { sealedError } from '../http/admission.ts';
import { type App, createApp } from '../http/app.ts';
import type { LocalRoute, RequestEnv, Sealing } from '../http/deps.ts';
import { refused, respond } from '../http/respond.ts';
import type { DirectoryLock } from '../store/lock.ts';
import { version } from '../version.ts';
import { openUnsealed } from './appliance.ts';
import type { Appliance } from './assemble.ts';
import { consoleFiles } from './console-files.ts';
import type { OpenedSeal } from './custody/unlock.ts';
import { unsealBrake } from './custody/unseal-brake.ts';
import { Unsealer } from './custody/unsealer.ts';
import { descriptionFiles } from './description-files.ts';
import { silentLogger } from './notices.ts';
import type { OpenOptions } from './open-options.ts';
import { servedPeople } from './people.ts';
import { readSealFile } from './seal-file.ts';
import type { SealedStatus } from './status.ts';
import { Tenants } from './tenants.ts';
import { systemWorld } from './world.ts';

/** How long requests under way may take once the appliance is sealed, in milliseconds. */
const grace = 10_000;

export class SealableAppliance implements Sealing {
  readonly #options: OpenOptions;
  readonly #lock: Pick<DirectoryLock, 'needInPlace'>;
  readonly #unsealer: Unsealer;
  readonly #sealedApp: App;
  readonly #brake = unsealBrake(Date.now);
  #open: Appliance | undefined;
  #underWay = 0;
  /** Opening or closing: one at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  /** The caller keeps the lock on the directory until `close` is done. */
  constructor(options: OpenOptions, lock: Pick<DirectoryLock, 'needInPlace'>) {
    this.#options = options;
    this.#lock = lock;
    const sources = { ...options.sources, keyFile: options.keyFile };
    this.#unsealer = new Unsealer({ data: options.data, sources, read: () => readSealFile(options.data) });
    this.#sealedApp = this.#makeSealedApp();
  }

  /** Opens the appliance where its key comes by itself. Answers why it does not; throws where nobody could open it. */
  async start(): Promise<KmsError | undefined> {
    await this.#unsealer.look();
    try {
      await this.#inTurn(() => this.#take({ retry: true }));
      return undefined;
    } catch (error) {
      if (error instanceof KmsError && error.code === 'sealed') return error;
      throw error;
    }
  }

  /** The open appliance. */
  get appliance(): Appliance | undefined {
    return this.#open;
  }

  async fetch(request: Request, env: RequestEnv): Promise<Response> {
    const open = this.#open;
    if (!open) return this.#fetchSealed(request, env);
    this.#underWay++;
    try {
      return await open.app.fetch(request, env);
    } finally {
      this.#underWay--;
    }
  }

  status(): SealStatus {
    const kinds = (this.#open?.custodians() ?? this.#unsealer.slots).map(({ kind }) => kind);
    const sealed = this.#open === undefined;
    return { sealed, kinds: [...new Set(kinds)], ...(sealed && this.#unsealer.progress) };
  }

  async unseal(step: UnsealStep, from: RequestEnv): Promise<SealStatus> {
    await this.#inTurn(async () => {
      if (this.#open || this.#closed) return;
      const opened = await this.#brake(from, () => this.#take(step));
      if (!opened) return;
      const { id, kind } = opened.slot;
      const keyid = from.local ? localCaller.id : 'network';
      await this.#keep({ action: 'system.unseal', keyid, props: { custodian: id, kind } });
    });
    return this.status();
  }

  seal(): void {
    const open = this.#open;
    if (!open) return;
    this.#open = undefined;
    this.#inTurn(async () => {
      for (let waited = 0; this.#underWay > 0 && waited < grace; waited += 20) await setTimeout(20);
      await open.close();
      await this.#unsealer.look();
      this.#say('info', 'the appliance is sealed');
    }).catch((cause: unknown) => this.#say('error', 'sealing the appliance failed', cause));
  }

  /** Waits for what is under way, and lets go of everything but the lock. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#turn;
    const open = this.#open;
    this.#open = undefined;
    this.#unsealer.forget();
    await open?.close();
  }

  async #take(step: UnsealStep): Promise<OpenedSeal | undefined> {
    const opened = await this.#unsealer.take(step);
    if (!opened) return undefined;
    this.#unsealer.forget();
    try {
      this.#open = await openUnsealed({ ...this.#options, sealing: this }, opened, this.#lock);
    } catch (cause) {
      opened.seal.wipe();
      // At a start the reason itself; later it is for the log.
      if (step.retry) throw cause;
      this.#say('error', 'the key is right, and yet the appliance could not be opened', cause);
      throw new KmsError('unavailable', 'the key is right, and yet the appliance could not be opened', {
        hint: 'its log says why',
        cause,
      });
    }
    return opened;
  }

  /** What cannot be recorded is undone. */
  async #keep(activity: Parameters<Appliance['record']>[0]): Promise<void> {
    try {
      await this.#open?.record(activity);
      this.#say('info', 'the appliance was unsealed');
    } catch (cause) {
      const open = this.#open;
      this.#open = undefined;
      await open?.close();
      throw new KmsError('unavailable', 'unsealing could not be recorded; the appliance stays sealed', { cause });
    }
  }

  async #fetchSealed(request: Request, env: RequestEnv): Promise<Response> {
    // What belongs to the open appliance is unknown to this app; the administrator is told better.
    const { pathname } = new URL(request.url);
    const known = sealedPaths.includes(pathname);
    if (env.local && pathname.startsWith('/local/') && !known) return respond(refused(sealedError));
    return this.#sealedApp.fetch(request, env);
  }

  #makeSealedApp(): App {
    const { logger = silentLogger, world = systemWorld(), baseUrl } = this.#options;
    return createApp({
      tenants: new Tenants(),
      world,
      logger,
      get baseUrl() {
        return baseUrl?.() ?? 'http://kms.local';
      },
      people: servedPeople(world).people,
      consoleFiles: consoleFiles(),
      descriptionFiles: descriptionFiles(),
      ready: () => ({ ok: false, reason: 'the appliance is sealed', details: { sealed: true } }),
      sealed: () => true,
      sealing: this,
      localRoutes: this.#sealedRoutes(),
    });
  }

  #sealedRoutes(): readonly LocalRoute[] {
    const status = async (): Promise<SealedStatus> => ({ version, ...this.status(), sealed: true });
    return [
      { method: 'GET', path: '/local/status', handle: status },
      { method: 'POST', path: '/local/seal', handle: status },
    ];
  }

  #say(level: 'info' | 'error', message: string, cause?: unknown): void {
    this.#options.onNotice?.({ level, message, ...(cause === undefined ? {} : { cause }) });
  }

  #inTurn<R>(run: () => Promise<R>): Promise<R> {
    const mine = this.#turn.then(run);
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

const sealedPaths = ['/local/status', '/local/seal'];
