// A software authenticator, including the browser's part: makes passkeys (ES256) and uses them as Web Authentication
// says. Each of its claims can be falsified.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { totpCode, totpStep } from '../../src/crypto/totp.ts';

/** The code that an app with the secret shows at that time. */
export function appCode(secret: string, now: number): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...secret].map((each) => alphabet.indexOf(each).toString(2).padStart(5, '0')).join('');
  const bytes = bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? [];
  return totpCode(Uint8Array.from(bytes), totpStep(now));
}

interface CreationOptions {
  readonly rp: { readonly id: string };
  readonly user: { readonly id: string };
  readonly challenge: string;
}

interface RequestOptions {
  readonly rpId: string;
  readonly challenge: string;
}

export interface Claims {
  /** Origin of the page; default: https with the requested host. */
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly type?: string;
  /** 1: user present; 4: user verified. */
  readonly flags?: number;
  readonly counter?: number;
  /** Attestation format; default: none. */
  readonly fmt?: string;
}

const present = 1;
const verified = 4;
const attested = 64;

export class Authenticator {
  readonly credentialId = randomBytes(32).toString('base64url');
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #userHandle: string | undefined;
  #counter = 0;

  /** Returns a RegistrationResponseJSON. */
  create({ rp, user, challenge }: CreationOptions, claims: Claims = {}) {
    this.#userHandle = user.id;
    const clientData = clientDataOf('webauthn.create', rp.id, challenge, claims);
    const id = Buffer.from(this.credentialId, 'base64url');
    const length = Buffer.alloc(2);
    length.writeUInt16BE(id.length);
    const authData = Buffer.concat([
      this.#head(claims.rpId ?? rp.id, (claims.flags ?? present | verified) | attested, claims.counter ?? 0),
      Buffer.alloc(16),
      length,
      id,
      coseKey(this.#keys.publicKey),
    ]);
    const fmt = claims.fmt ?? 'none';
    const statement = fmt === 'none' ? Buffer.from([0xa0]) : cborMap([['sig', cborBytes(randomBytes(64))]]);
    const object = cborMap([
      ['fmt', cborText(fmt)],
      ['attStmt', statement],
      ['authData', cborBytes(authData)],
    ]);
    return {
      id: this.credentialId,
      rawId: this.credentialId,
      type: 'public-key',
      response: {
        clientDataJSON: clientData.toString('base64url'),
        attestationObject: object.toString('base64url'),
        transports: ['internal'],
      },
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
    };
  }

  /** Returns an AuthenticationResponseJSON. */
  get({ rpId, challenge }: RequestOptions, claims: Claims = {}) {
    const clientData = clientDataOf('webauthn.get', rpId, challenge, claims);
    this.#counter += 1;
    const authData = this.#head(
      claims.rpId ?? rpId,
      claims.flags ?? present | verified,
      claims.counter ?? this.#counter,
    );
    const signed = Buffer.concat([authData, sha256(clientData)]);
    return {
      id: this.credentialId,
      rawId: this.credentialId,
      type: 'public-key',
      response: {
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: authData.toString('base64url'),
        signature: sign('sha256', signed, this.#keys.privateKey).toString('base64url'),
        ...(this.#userHandle !== undefined && { userHandle: this.#userHandle }),
      },
      clientExtensionResults: {},
      authenticatorAttachment: 'platform',
    };
  }

  #head(rpId: string, flags: number, counter: number): Buffer {
    const rest = Buffer.alloc(5);
    rest.writeUInt8(flags);
    rest.writeUInt32BE(counter, 1);
    return Buffer.concat([sha256(Buffer.from(rpId)), rest]);
  }
}

function clientDataOf(kind: string, host: string, challenge: string, claims: Claims): Buffer {
  const { origin = `https://${host}`, type = kind } = claims;
  return Buffer.from(JSON.stringify({ type, challenge: claims.challenge ?? challenge, origin, crossOrigin: false }));
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** RFC 9053 §7.1.1: kty 2, alg -7, crv 1, x, y. */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Buffer.concat([
    Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
    cborBytes(Buffer.from(x, 'base64url')),
    Buffer.from([0x22]),
    cborBytes(Buffer.from(y, 'base64url')),
  ]);
}

function cborHead(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length]);
  if (length < 256) return Buffer.from([(major << 5) | 24, length]);
  return Buffer.from([(major << 5) | 25, length >> 8, length & 255]);
}

function cborBytes(bytes: Uint8Array): Buffer {
  return Buffer.concat([cborHead(2, bytes.length), bytes]);
}

function cborText(text: string): Buffer {
  return Buffer.concat([cborHead(3, text.length), Buffer.from(text)]);
}

function cborMap(entries: readonly (readonly [string, Buffer])[]): Buffer {
  return Buffer.concat([cborHead(5, entries.length), ...entries.flatMap(([name, value]) => [cborText(name), value])]);
}
