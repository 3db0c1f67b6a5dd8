// Certificates as `serve` was given them: whether they are valid, how long still, and who can read their key.
import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { exposureOf, modeText } from '../exposure.ts';
import type { Find } from './finding.ts';

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
  if (tlsCert !== undefined) await examineCertificate(tlsCert, now, find);
  const info = tlsKey === undefined ? undefined : await stat(tlsKey).catch(() => undefined);
  if (tlsKey === undefined || !info) return;
  const exposure = exposureOf(info);
  if (exposure === 'none' || exposure === 'own-group') return;
  const message = `others can read the private key of the certificate (mode ${modeText(info.mode)})`;
  find('error', 'certificate-key-exposed', tlsKey, message, `run: chmod 0600 ${tlsKey}, and get another certificate`);
}

async function examineCertificate(file: string, now: number, find: Find): Promise<void> {
  const renew = 'renew it, then send the server SIGHUP';
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(await readFile(file));
  } catch {
    find('error', 'certificate-unreadable', file, 'there is no certificate that can be read', renew);
    return;
  }
  const from = Date.parse(certificate.validFrom);
  const to = Date.parse(certificate.validTo);
  const until = new Date(to).toISOString();
  if (now > to) find('error', 'certificate-expired', file, `it was valid until ${until}`, renew);
  else if (now < from) {
    const message = `it is valid from ${new Date(from).toISOString()} on`;
    find('error', 'certificate-not-yet-valid', file, message, 'check the clock');
  } else if (to - now < soon) {
    find(
      'warning',
      'certificate-expiring',
      file,
      `it is valid until ${until}, ${Math.floor((to - now) / day)} days`,
      renew,
    );
  }
}
