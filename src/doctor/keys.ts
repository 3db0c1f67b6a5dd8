// Doctor's checks of the keys. The custodians of the master key, from the unopened seal: whether there are enough, and
// whether key files are in place, protected, and apart from the data. And the certificates given to `serve`: whether
// they are valid, for how long, and who can read their key.

import { stat } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { keyFilePlaces, readKeyFile } from '../custody/key-file.ts';
import { readSealFile } from '../custody/seal-keeper.ts';
import { KmsError } from '../errors.ts';
import { type MissingIssuer, missingIssuer } from '../platform/authorities.ts';
import { longestPem, readPair, validityOf, whyNotValid } from '../platform/certificate.ts';
import type { Find } from '../platform/finding.ts';
import { readFileWithin } from '../platform/node-files.ts';
import { exposureOf, modeText, refusePipe } from '../platform/ownership.ts';
import { parseHeader } from '../seal/header.ts';
import { type Slot, slotIdOf } from '../seal/slot.ts';

export async function examineCustodians(data: string, keyFile: string | undefined, find: Find): Promise<void> {
  let slots: readonly Slot[];
  try {
    const { bytes, name } = await readSealFile(data);
    slots = parseHeader(bytes, name).header.slots;
  } catch {
    // Opening the seal reports what is wrong with it.
    return;
  }
  if (slots.length === 1) {
    const message = `${slots[0]?.kind} is the only custodian: when it is lost, so is everything`;
    const advice = 'add another one with `kms master add-custodian`, or print a recovery kit with `kms recovery-kit`';
    find('advice', 'single-custodian', data, message, advice);
  }
  const wanted = slots.filter(({ kind }) => kind === 'keyfile');
  if (wanted.length === 0 && keyFile === undefined) return;
  const places = keyFilePlaces(data, keyFile, wanted);
  let found = 0;
  for (const place of places) if (await examineKeyFile(resolve(place), data, slots, find)) found++;
  if (found > 0) return;
  const message = `no key file is where it is looked for: ${places.join(', ')}`;
  find('warning', 'key-missing', data, message, 'put it there, or make sure that another custodian is at hand');
}

/** Returns whether there is one. */
async function examineKeyFile(place: string, data: string, slots: readonly Slot[], find: Find): Promise<boolean> {
  const info = await stat(place).catch(() => undefined);
  if (!info) return false;
  const exposure = exposureOf(info);
  if (exposure === 'group' || exposure === 'others') {
    const advice = `run: chmod 0600 ${place}; if anybody else may have read it, run \`kms master rotate\` with a new key file`;
    find('error', 'key-exposed', place, `others can read the master key's file (mode ${modeText(info.mode)})`, advice);
  } else {
    await examineKey(place, slots, find);
  }
  if (place.startsWith(`${resolve(data)}${sep}`)) {
    const message = 'it lies in the data directory: anybody who copies the data has the key with it';
    find('warning', 'key-inside-data', place, message, 'move it elsewhere, and name it with --key-file');
  } else if (info.dev === (await stat(data)).dev) {
    const message = 'it is on the same file system as the data: a copy of the disk has both';
    find(
      'advice',
      'key-beside-data',
      place,
      message,
      'keep it on another disk, as a systemd credential, or use a passphrase or shares',
    );
  }
  return true;
}

async function examineKey(place: string, slots: readonly Slot[], find: Find): Promise<void> {
  try {
    const secret = await readKeyFile(place);
    if (!secret) return;
    const id = slotIdOf(secret);
    secret.fill(0);
    if (slots.some((slot) => slot.id === id)) return;
    const message = `it is another key: ${id}, expected ${slots.map((slot) => slot.id).join(' or ')}`;
    find('error', 'key-wrong', place, message, 'put the key file that belongs to this data there');
  } catch (error) {
    const what = error instanceof KmsError ? error.message : 'it cannot be read';
    find('error', 'key-unreadable', place, what, 'put back an intact copy of it');
  }
}

export interface CertificateFiles {
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
}

const day = 24 * 60 * 60 * 1000;
const soon = 21 * day;

export async function examineCertificates(
  { tlsCert, tlsKey }: CertificateFiles,
  now: number,
  find: Find,
): Promise<void> {
  const isReadable = tlsCert === undefined || (await examineCertificate(tlsCert, now, find));
  if (tlsCert !== undefined && tlsKey !== undefined && isReadable) await examinePair(tlsCert, tlsKey, find);
  const info = tlsKey === undefined ? undefined : await stat(tlsKey).catch(() => undefined);
  if (tlsKey === undefined || !info) return;
  const exposure = exposureOf(info);
  if (exposure === 'none' || exposure === 'own-group') return;
  const message = `others can read the private key of the certificate (mode ${modeText(info.mode)})`;
  find('error', 'certificate-key-exposed', tlsKey, message, `run: chmod 0600 ${tlsKey}, and get another certificate`);
}

/** Reads the pair as the next start, or the next SIGHUP, would. */
async function examinePair(tlsCert: string, tlsKey: string, find: Find): Promise<void> {
  try {
    // A key that others can read is a separate finding.
    await readPair(tlsCert, tlsKey, { exposed: true });
  } catch (error) {
    const { message, hint } = error instanceof KmsError ? error : { message: 'it cannot be read', hint: undefined };
    const advice = `${hint ?? 'put the files themselves there'}; until then no server starts with them`;
    find('error', 'certificate-refused', tlsKey, message, advice);
  }
}

/** Returns whether it can be read. */
async function examineCertificate(file: string, now: number, find: Find): Promise<boolean> {
  const renew = 'renew it, then send the server SIGHUP';
  let validity: ReturnType<typeof validityOf>;
  let issuer: MissingIssuer | undefined;
  try {
    refusePipe(file, await stat(file), 'a certificate');
    const pem = await readFileWithin(file, longestPem);
    validity = validityOf(pem);
    issuer = missingIssuer(pem.toString());
  } catch {
    find('error', 'certificate-unreadable', file, 'there is no certificate that can be read', renew);
    return false;
  }
  if (issuer !== undefined) {
    const message = `the certificate of its issuer is missing: ${issuer.name}`;
    const advice =
      'put that one behind it in the file: clients that are not given it as an authority refuse to connect';
    find(issuer.isPublic ? 'warning' : 'advice', 'certificate-chain', file, message, advice);
  }
  const { to } = validity;
  const wrong = whyNotValid(validity, now);
  if (wrong !== undefined) {
    const isExpired = now > to;
    const code = isExpired ? 'certificate-expired' : 'certificate-not-yet-valid';
    find('error', code, file, wrong, isExpired ? renew : 'check the clock');
  } else if (to - now < soon) {
    find(
      'warning',
      'certificate-expiring',
      file,
      `it is valid until ${new Date(to).toISOString()}, ${Math.floor((to - now) / day)} days`,
      renew,
    );
  }
  return true;
}
