// EndpointInput is a request to a declared endpoint as far as it is understood: the tenant, the credential, and what it
// carries, checked against the declaration. Nothing of it changes once it is made.
import type { Endpoint } from '../api/endpoint.ts';
import { KmsError } from '../errors.ts';
import type { PageRequest } from '../store/sql.ts';
import type { Credential } from './admission.ts';
import type { Appliance, OpenState } from './appliance.ts';
import type { BodyRead } from './body.ts';
import type { Codec } from './codec.ts';
import { type ConsoleCookie, originOf } from './console-cookie.ts';
import { type Checked, type CheckedInput, checkInput, type Fields, type RawInput } from './input.ts';
import type { ApiRequest } from './request.ts';
import { baseUrlOf, type Input } from './route.ts';
import type { TenantHandle } from './tenants.ts';

/** A request before its body is read. */
export interface KnownRequest {
  readonly request: ApiRequest;
  readonly open: OpenState;
  readonly handle: TenantHandle;
  /** Absent where the endpoint is public and none came. */
  readonly credential: Credential | undefined;
  /** Where a page of the console asks. */
  readonly cookie: ConsoleCookie | undefined;
  /** Absent where the request came in the endpoint's own words. */
  readonly codec: Codec | undefined;
  /** Without the body. */
  readonly raw: RawInput;
}

export class EndpointInput implements Input<unknown>, CheckedInput {
  readonly appliance: Appliance;
  readonly endpoint: Endpoint;
  readonly known: KnownRequest;
  readonly raw: RawInput;
  /** Made on demand: validation takes longer than most operations. */
  #checked: Checked | undefined = undefined;

  constructor(appliance: Appliance, endpoint: Endpoint, known: KnownRequest, body: BodyRead | undefined) {
    this.appliance = appliance;
    this.endpoint = endpoint;
    this.known = known;
    this.raw = body ? { params: known.raw.params, query: known.raw.query, body } : known.raw;
  }

  get open(): OpenState {
    return this.known.open;
  }

  get handle(): TenantHandle {
    return this.known.handle;
  }

  get request(): ApiRequest {
    return this.known.request;
  }

  get credential(): Credential | undefined {
    return this.known.credential;
  }

  /** The first fault of the input. To be asked once the caller may ask, and before the parts below. */
  get problem(): KmsError | undefined {
    this.#checked ??= checkInput(this.endpoint, this.handle, this.raw);
    return this.#checked.error;
  }

  get #input(): CheckedInput {
    if (this.#checked && !this.#checked.error) return this.#checked.input;
    throw new KmsError('internal', 'expected input that was checked');
  }

  get params(): Fields {
    return this.#input.params;
  }

  get query(): Fields {
    return this.#input.query;
  }

  get body(): Fields {
    return this.#input.body;
  }

  get page(): PageRequest {
    return this.#input.page;
  }

  get item(): Codec['item'] {
    return this.known.codec?.item;
  }

  get address(): string {
    return this.request.remoteAddress ?? 'local';
  }

  get origin(): string {
    return originOf(this.request, baseUrlOf(this));
  }

  get isConsole(): boolean {
    return this.known.cookie !== undefined;
  }

  get path(): string {
    return this.endpoint.path;
  }
}
