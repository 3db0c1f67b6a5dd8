import type { SealStatus, UnsealStep } from '../api/system.ts';
import type { Stopping } from '../backup/service.ts';
import { HeldDirectory } from '../cluster/held-directory.ts';
import type { World } from '../core/context.ts';
import type { Origin } from '../core/credential.ts';
import { AutoUnsealer } from '../custody/auto-unsealer.ts';
import { sealedOnPurpose } from '../custody/seal-keeper.ts';
import { type OpenedSeal, unlockSeal } from '../custody/unlock.ts';
import { UnsealBackoff, Unsealer } from '../custody/unsealer.ts';
import { surfaces } from '../dialects/surfaces.ts';
import { KmsError } from '../errors.ts';
import { sealedError } from '../http/admission.ts';
import { type App, createApp } from '../http/app.ts';
import {
  type AppliancePort,
  type Logger,
  type SealedState,
  type Sealing,
  silentLogger,
} from '../http/appliance-port.ts';
import { defaultBodyLimit } from '../http/body.ts';
import { trustsCertificates } from '../http/tenant-directory.ts';
import type { Label } from '../model/label.ts';
import { systemWorld } from '../platform/environment.ts';
import { consoleFiles, descriptionFiles, guides } from '../platform/program-files.ts';
import { yieldBeforeRequest, yieldToEventLoop } from '../store/event-loop.ts';
import { SerialQueue } from '../store/serial-queue.ts';
import type { NotedMark } from '../store/tables/marks.ts';
import { version } from '../version.ts';
import type { ApplianceOptions, LiveConfig } from './config.ts';
import { openUnsealed, type Unsealed } from './open-appliance.ts';
import { Requests } from './requests.ts';
import { byLocal, localOnly, type UnsealedBy, unsealRecorded } from './unsealing.ts';

/** An open appliance, for its owner. */
export interface OpenAppliance extends Pick<Unsealed, 'status' | 'copies' | 'custodians'> {
  readonly app: App;
  /** Handles a request as the administrator at this machine. */
  fetchLocal(request: Request): Promise<Response>;
  /** Waits for work under way, and releases the directory. */
  close(): Promise<void>;
}

export class HeldAppliance implements AppliancePort, Sealing {
  readonly app: App;
  readonly requests: Requests;
  readonly world: World;
  readonly logger: Logger;
  readonly turn = yieldToEventLoop;
  readonly requestTurn = yieldBeforeRequest;
  readonly consoleFiles = consoleFiles();
  readonly descriptionFiles = descriptionFiles();
  readonly guides = guides;
  #options: ApplianceOptions;
  readonly #serves: boolean;
  readonly #directory: HeldDirectory;
  readonly #unsealer: Unsealer;
  /** Used on a node only. */
  readonly #lookOut: AutoUnsealer;
  readonly #backoff: UnsealBackoff;
  readonly #sealed: SealedState;
  #state: SealedState | Unsealed;
  /** Opening or closing, one at a time. */
  readonly #queue = new SerialQueue();
  /** The last closing. */
  #closing: Promise<unknown> = Promise.resolve();
  #isClosing = false;
  /** Writes of the mark of a seal on purpose, one at a time. */
  readonly #marks = new SerialQueue();
  /**
   * Steps of the administrator at the machine, one at a time, so that a command that provides the key runs once for all
   * requests.
   */
  readonly #localSteps = new SerialQueue();
  /** Log positions of the stores when they were last open. */
  readonly #known = new Map<string, NotedMark>();
  #timesSealed = 0;
  #asksCertificates = false;
  #closed = false;
  #rekeying = false;

  /**
   * Locks the data directory for this process, still sealed; `close` releases it. Throws `in-use` if another process
   * has it. `serves`: it runs until it is told to end.
   */
  static async hold(options: ApplianceOptions, { serves }: { readonly serves: boolean }): Promise<HeldAppliance> {
    return new HeldAppliance(options, serves, await HeldDirectory.hold(options, serves));
  }

  private constructor(options: ApplianceOptions, serves: boolean, directory: HeldDirectory) {
    const { keyFile, world = systemWorld(), logger = silentLogger } = options;
    const { defaultKem } = options;
    this.world = defaultKem ? { ...world, defaultKem } : world;
    this.logger = logger;
    this.#options = options;
    this.#serves = serves;
    this.#directory = directory;
    this.#backoff = new UnsealBackoff(world, () => directory.nodes);
    const read = () => directory.seal.read();
    this.#unsealer = new Unsealer({ data: directory.root, sources: { ...options.sources, keyFile }, read });
    this.#sealed = { sealed: true, local: this.#sealedHandlers() };
    this.#state = this.#sealed;
    this.app = createApp(this, surfaces);
    this.requests = new Requests(this.app, () => this.#state.sealed);
    this.#lookOut = new AutoUnsealer({
      isSealed: () => this.#state.sealed,
      isOnPurpose: () => directory.seal.isOnPurpose(),
      open: () => this.#openAgain(),
      onEvent: (event) => options.onEvent?.(event),
    });
  }

  /**
   * Unseals if a key needs no person and the appliance is not sealed on purpose. Returns why it stays sealed; throws if
   * no one could unseal it.
   */
  async start(): Promise<KmsError | undefined> {
    await this.#unsealer.look();
    const onPurpose = await this.#directory.seal.isOnPurpose();
    if (this.#directory.node) this.#lookOut.start();
    if (onPurpose) return sealedOnPurpose;
    try {
      const opened = await this.#unsealer.take({ retry: true });
      if (opened) await this.#queue.run(async () => (this.#state = await this.#openWith(opened)));
      return undefined;
    } catch (error) {
      if (!(error instanceof KmsError) || error.code !== 'sealed') throw error;
      if (this.#directory.node) this.#lookOut.note(error);
      return error;
    }
  }

  /**
   * Opens it now, with a key available on this machine. Throws `sealed` if there is none, and if it is sealed on
   * purpose.
   */
  async open(): Promise<void> {
    const { keyFile, sources, unseals } = this.#options;
    const { root, seal } = this.#directory;
    const onPurpose = await seal.isOnPurpose();
    if (onPurpose && !unseals) throw sealedOnPurpose;
    await this.#unsealer.look();
    const opened = await unlockSeal(await seal.read(), root, { ...sources, keyFile });
    this.#state = onPurpose ? await this.#unsealWith(opened, byLocal) : await this.#openWith(opened);
  }

  /** For the look-out: unseals unless it is sealed on purpose, or was opened or sealed in the meantime. */
  #openAgain(): Promise<void> {
    return this.#localSteps.run(async () => {
      // A closing appliance may still change the seal.
      await this.#closing;
      if (!this.#state.sealed || this.#closed) return;
      const opened = await this.#unsealer.take({ retry: true });
      if (!opened) return;
      await this.#queue.run(async () => {
        if (!this.#state.sealed || this.#closed || (await this.#directory.seal.isOnPurpose()))
          return opened.seal.wipe();
        this.#state = await this.#openWith(opened);
        this.#report('info', 'the appliance is no longer kept sealed: it is open on this node, too');
      });
    });
  }

  /** Another node was sealed on purpose. */
  #sealedElsewhere(): Promise<void> {
    return this.#queue.run(async () => {
      if (!this.#closed && !this.#state.sealed) this.#becomeSealed(this.#state);
    });
  }

  /** The master key was rotated on another node: this node looks for the new key, and is sealed without it. */
  #rotatedElsewhere(): void {
    if (this.#rekeying) return;
    this.#rekeying = true;
    const find = async (): Promise<void> => {
      const state = this.#state;
      if (state.sealed || this.#closed) return;
      try {
        const opened = await this.#unsealer.take({ retry: true });
        if (opened) await state.adopt(opened.seal);
      } catch (cause) {
        this.#report(
          'error',
          'the master key was rotated on another node, and the new one is not available here',
          cause,
        );
        this.#lookOut.note(cause);
        await this.#sealedElsewhere();
      }
    };
    void this.#localSteps.run(find).finally(() => {
      this.#rekeying = false;
    });
  }

  get state(): SealedState | Unsealed {
    return this.#state;
  }

  get sealing(): Sealing {
    return this;
  }

  get bodyLimit(): number {
    return this.#options.bodyLimit ?? defaultBodyLimit;
  }

  get label(): Label | undefined {
    return this.#options.label;
  }

  /** Applies new settings: at once while it is open, and each time it is opened later. */
  async reconfigure(config: LiveConfig): Promise<void> {
    let changed: Promise<void> | undefined;
    // In the queue, so that no opening is under way. The change itself is awaited outside: it must not delay a seal.
    await this.#queue.run(async () => {
      const { shipping } = this.#options.copies ?? {};
      this.#options = { ...this.#options, ...config, copies: { ...config.copies, shipping } };
      if (!this.#state.sealed) changed = this.#state.reconfigure(this.#options);
    });
    await changed;
  }

  /** Whether clients are asked for a certificate. Sealed, it is as it was. */
  asksCertificates(): boolean {
    const state = this.#state;
    if (!state.sealed) this.#asksCertificates = trustsCertificates(state.tenants, this.#asksCertificates);
    return this.#asksCertificates;
  }

  /** Throws `sealed` while it is sealed. */
  get opened(): OpenAppliance {
    const state = this.#state;
    if (state.sealed) throw sealedError;
    return {
      app: this.app,
      fetchLocal: (request) => this.requests.fetch(request, { local: true }),
      status: state.status,
      copies: state.copies,
      custodians: state.custodians,
      close: async () => {
        this.giveUp();
        await this.requests.answered();
        await this.close();
      },
    };
  }

  /** Whether the held directory is still at its path. */
  get isInPlace(): boolean {
    return this.#directory.isInPlace();
  }

  status(): SealStatus {
    const state = this.#state;
    const slots = state.sealed ? this.#unsealer.slots : state.custodians();
    const kinds = [...new Set(slots.map(({ kind }) => kind))];
    return { sealed: state.sealed, kinds, ...(state.sealed && this.#unsealer.progress) };
  }

  refusal(from: Origin): KmsError | undefined {
    return this.#state.sealed ? this.#backoff.refusal(from) : undefined;
  }

  async unseal(step: UnsealStep, from: Origin): Promise<SealStatus> {
    if (!from.local && (step.retry || step.reset)) throw localOnly(step);
    // Another node may have been sealed a moment ago, which no turn has shown yet.
    if (!this.#directory.node || this.#state.sealed || !(await this.#directory.seal.isOnPurpose()))
      return this.#unseal(step, from);
    await this.#sealedElsewhere();
    return this.#unseal(step, from);
  }

  async #unseal(step: UnsealStep, from: Origin): Promise<SealStatus> {
    if (from.local) await this.#localSteps.run(() => this.#step(step, from));
    else await this.#step(step, from);
    return this.status();
  }

  /**
   * While it is closing, seals at once: closing waits for requests under way, so a request to seal must not queue
   * behind it. Nothing can open it before.
   */
  seal(): Promise<void> {
    return this.#isClosing ? this.#sealNow() : this.#queue.run(() => this.#sealNow());
  }

  async #sealNow(): Promise<void> {
    if (this.#closed) throw new KmsError('unavailable', 'the server is stopping');
    const state = this.#state;
    this.#timesSealed++;
    await this.#marks.run(() => (state.sealed ? this.#directory.seal : state.seal).sealOnPurpose());
    if (!state.sealed) this.#becomeSealed(state);
  }

  /** Must run in the queue. */
  #becomeSealed(state: Unsealed): void {
    this.#state = this.#sealed;
    state.giveUp();
    this.#isClosing = true;
    this.#closing = this.#queue
      .run(() => this.#shut(state))
      .catch((cause: unknown) => this.#report('error', 'sealing the appliance failed', cause))
      .finally(() => {
        this.#isClosing = false;
      });
  }

  /** Ends long work that changes nothing, drills and examinations, as it is about to be closed. */
  giveUp(): void {
    if (!this.#state.sealed) this.#state.giveUp();
  }

  /** Waits for work under way, and releases the directory. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#lookOut.end();
    await this.#queue.idle();
    this.#unsealer.forget();
    try {
      await this.#closeOpen();
    } finally {
      await this.#directory.release();
    }
  }

  /** At once, whatever is under way. */
  async #closeOpen(): Promise<void> {
    const state = this.#state;
    this.#state = this.#sealed;
    if (!state.sealed) await state.close();
  }

  /** Stops for good: a standby took over. */
  readonly #stopping: Stopping = {
    stop: async (reason) => {
      this.requests.stop(reason);
      await this.requests.answered();
    },
    end: () => {
      this.#lookOut.end();
      void this.#queue
        .run(() => this.#closeOpen())
        .catch((cause: unknown) => this.#report('error', 'closing the appliance failed', cause));
    },
  };

  async #shut(open: Unsealed): Promise<void> {
    await this.requests.answered();
    await open.close();
    await this.#unsealer.look();
    this.#report('info', 'the appliance is sealed');
  }

  /**
   * The secret is checked outside the queue, so that the administrator at the machine does not wait for requests from
   * the network.
   */
  async #step(step: UnsealStep, from: Origin): Promise<void> {
    const timesSealed = this.#timesSealed;
    const take = async (): Promise<OpenedSeal | undefined> => {
      // A closing appliance may still change the seal.
      await this.#closing;
      return !this.#state.sealed || this.#closed ? undefined : this.#unsealer.take(step, from);
    };
    if (!this.#state.sealed || this.#closed) return;
    const opened = await (from.local ? take() : this.#backoff.run(from, step.passphrase !== undefined, take));
    if (!opened) return;
    await this.#queue.run(async () => {
      if (timesSealed === this.#timesSealed) return this.#enter(opened, step, from);
      opened.seal.wipe();
      throw new KmsError('unavailable', 'the appliance was sealed again meanwhile; try again');
    });
  }

  /** Opens the appliance, once the unsealing is recorded and the seal on purpose has ended. */
  async #enter(opened: OpenedSeal, step: UnsealStep, { local, remoteAddress }: Origin): Promise<void> {
    if (!this.#state.sealed || this.#closed) {
      opened.seal.wipe();
      return;
    }
    const by: UnsealedBy = local ? byLocal : { keyid: 'network', address: remoteAddress };
    this.#state = await this.#unsealWith(opened, by, (cause) => {
      // A caller who has the machine look for the key gets the reason; others find it in the log.
      if (step.retry) throw cause;
      this.#report('error', 'the key is right, but the appliance could not be opened', cause);
      throw new KmsError('unavailable', 'the key is right, but the appliance could not be opened', {
        hint: 'its log says why',
        cause,
      });
    });
    this.#report('info', 'the appliance was unsealed');
  }

  #unsealWith(opened: OpenedSeal, by: UnsealedBy, refuse?: (cause: unknown) => never): Promise<Unsealed> {
    const { id, kind } = opened.slot;
    const open = () => (refuse ? this.#openWith(opened).catch(refuse) : this.#openWith(opened));
    return unsealRecorded(this.#directory, open, { ...by, props: { custodian: id, kind } });
  }

  async #openWith(opened: OpenedSeal): Promise<Unsealed> {
    this.#unsealer.forget();
    try {
      const holder = {
        ...{ directory: this.#directory, world: this.world, serves: this.#serves },
        ...{ sealing: this, stopping: this.#stopping },
        known: this.#known,
        elsewhere: { sealed: () => void this.#sealedElsewhere(), rotated: () => this.#rotatedElsewhere() },
      };
      const open = await openUnsealed(this.#options, opened, holder);
      this.#lookOut.forget();
      // Only once: after sealing and unsealing, the files are compared again.
      this.#options = { ...this.#options, acceptOlder: undefined, takeBack: undefined };
      return open;
    } catch (error) {
      opened.seal.wipe();
      throw error;
    }
  }

  #sealedHandlers(): SealedState['local'] {
    return {
      applianceStatus: async () => {
        const onPurpose = await this.#directory.seal.isOnPurpose();
        const { reason } = this.#lookOut;
        return {
          version,
          ...this.status(),
          sealed: true,
          onPurpose,
          ...(!onPurpose && reason !== undefined && { reason }),
          ...(this.#directory.node && { shared: await this.#directory.node.status() }),
        };
      },
      // It may be sealed only for want of its key, which may become available.
      sealAppliance: async () => {
        await this.seal();
        return this.status();
      },
    };
  }

  #report(level: 'info' | 'warn' | 'error', message: string, cause?: unknown): void {
    this.#options.onEvent?.({ level, message, ...(cause === undefined ? {} : { cause }) });
  }
}
