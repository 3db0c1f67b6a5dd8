// The tenant's authority for client certificates. Its key is a managed key that signs nothing else; each version has a
// certificate of its own, so that rotating the key makes a new authority. Issued certificates are pinned, so the old
// ones stay good whatever becomes of it.
import { fromBase64, toBase64 } from '../../crypto/bytes.ts';
import {
  type Certificate,
  certificateToSign,
  commonNameDer,
  newSerial,
  readCertificate,
  signedCertificate,
} from '../../crypto/certificates.ts';
import { ecPublicKey, newScalar, scalarToPkcs8 } from '../../crypto/managed/ecdsa.ts';
import { toPem } from '../../crypto/pem.ts';
import { KmsError } from '../../errors.ts';
import type { ResourceRef } from '../../model/activity-details.ts';
import type { KeyVersion } from '../../store/tables/managed-key-versions.ts';
import type { ManagedKey } from '../../store/tables/managed-keys.ts';
import type { Context } from '../context.ts';
import { issuesCertificates, KeyInUse } from '../key-in-use.ts';
import { nextVersion } from '../key-versions.ts';
import { inPlace } from '../key-work.ts';
import { insertKey, keyRef, mustFind } from '../managed-keys.ts';
import { authorityName, keyHashOf } from './client-certificates.ts';

const keyName = 'client-ca';
const dayLength = 86_400_000;
const authorityLife = 3650 * dayLength;
/** Tolerance for clocks that are behind. */
const backdated = 600_000;

interface IssuedCertificate {
  /** PEM. */
  readonly certificate: string;
  readonly privateKey: string;
  readonly caCertificate: string;
  readonly keyHash: string;
  readonly notAfter: number;
  /** The key of the authority, if it was made for this. */
  readonly made: readonly ResourceRef[];
}

/** Issues a client certificate, with a new key, for an API key. */
export function issueCertificate(ctx: Context, apikeyId: string, days: number): IssuedCertificate {
  const { tx, world } = ctx;
  const { random } = world;
  const work = inPlace(world);
  const there = livingAuthority(ctx);
  const key = there ?? newAuthorityKey(ctx);
  const { use, stored } = asAuthority(key, () => {
    const opened = new KeyInUse(ctx, { key: key.id }, 'sign', work, issuesCertificates);
    return { use: opened, stored: opened.toMake(0, 'signing') };
  });
  const sign = (tbs: Uint8Array): Uint8Array => {
    const input = { bytes: tbs, isDigest: false };
    const made = work.run('sign', {
      type: 'ecdsa-p256',
      key: use.opened(stored),
      input,
      options: { hash: 'sha2-256' },
    });
    return signedCertificate(tbs, made);
  };
  const issuerKey = use.publicKey(stored);
  // Certificates have whole seconds.
  const now = Math.floor(world.now() / 1000) * 1000;
  const times = { notBefore: now - backdated, notAfter: now + days * dayLength };
  const authority = certificateOf(ctx, stored, times.notAfter, () => {
    const name = commonNameDer(authorityName(ctx.tenant.name, { name: key.name, version: stored.version }));
    const names = { subject: name, issuer: name, spki: issuerKey, issuerKey };
    const life = { notBefore: times.notBefore, notAfter: now + authorityLife };
    return sign(certificateToSign({ serial: newSerial(random), ...names, ...life, isAuthority: true }));
  });
  const scalar = newScalar('ecdsa-p256', random);
  const spki = ecPublicKey('ecdsa-p256', scalar);
  const names = { subject: commonNameDer(apikeyId), issuer: authority.subject, spki, issuerKey };
  const leaf = sign(certificateToSign({ serial: newSerial(random), ...names, ...times, isAuthority: false }));
  const pkcs8 = scalarToPkcs8('ecdsa-p256', scalar, spki);
  try {
    return {
      certificate: toPem('CERTIFICATE', leaf),
      privateKey: toPem('PRIVATE KEY', pkcs8),
      caCertificate: toPem('CERTIFICATE', authority.der),
      keyHash: keyHashOf({ spki }),
      notAfter: times.notAfter,
      made: there ? [] : [keyRef(mustFind(tx, key.id))],
    };
  } finally {
    scalar.fill(0);
    pkcs8.fill(0);
  }
}

/** Runs `open`, whose refusal of the key gets its name and the ways out. */
function asAuthority<T>({ name }: ManagedKey, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof KmsError) || (error.code !== 'conflict' && error.code !== 'invalid')) throw error;
    const message =
      `${name}, which issues client certificates, cannot be used: ${error.message}. ` +
      'One that is suspended can be enabled; delete any other, and the next certificate makes a new one';
    throw new KmsError(error.code, message, { cause: error });
  }
}

/** The key of the authority; undefined if there is none, or it was deleted. */
function livingAuthority({ tx }: Pick<Context, 'tx'>): ManagedKey | undefined {
  const newest = tx.clientAuthorities.newest();
  const key = newest && tx.managedKeys.byId(newest.keyId);
  return key?.deletedAt === undefined ? key : undefined;
}

function newAuthorityKey(ctx: Context): ManagedKey {
  const { managedKeys } = ctx.tx;
  const isTaken = (name: string) => managedKeys.byName(name) ?? managedKeys.aliasOf(name);
  let name = keyName;
  for (let n = 2; isTaken(name) !== undefined; n++) name = `${keyName}-${n}`;
  const key = insertKey(ctx, { name, type: 'ecdsa-p256', uses: ['sign', 'verify'], exportable: false });
  nextVersion(ctx, key, inPlace(ctx.world));
  return mustFind(ctx.tx, key.id);
}

/** The version's certificate, replaced if it ends before `until`. */
function certificateOf(
  { tx }: Pick<Context, 'tx'>,
  { keyId, version }: KeyVersion,
  until: number,
  make: () => Uint8Array,
): Certificate {
  const kept = tx.clientAuthorities.ofVersion(keyId, version);
  const bytes = kept && fromBase64(kept.certificate);
  if (kept && !bytes) throw new KmsError('corrupt', 'the stored certificate of an authority is not one');
  const certificate = bytes && readCertificate(bytes);
  if (certificate && certificate.notAfter >= until) return certificate;
  const made = make();
  tx.clientAuthorities.put({ keyId, version, certificate: toBase64(made) });
  return readCertificate(made);
}
