// A real SMTP server that keeps the mails it receives.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { certificate, privateKey } from './localhost-certificate.ts';

export interface Received {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body as received. */
  readonly raw: string;
  readonly secure: boolean;
  readonly user: string | undefined;
}

export async function startSmtpServer(options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  let arrived: (() => void)[] = [];
  const server = new SMTPServer({
    cert: certificate,
    key: privateKey,
    authOptional: true,
    disabledCommands: [],
    ...options,
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString('utf8'),
          secure: session.secure,
          user: session.user,
        });
        callback();
        for (const tell of arrived) tell();
        arrived = [];
      });
    },
  });
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  // Cast: a server that listens on a port has an address object.
  const { port } = server.server.address() as AddressInfo;
  return {
    port,
    received,
    /** Resolves once there are `count` mails. */
    async mails(count: number): Promise<readonly Received[]> {
      while (received.length < count) await new Promise<void>((resolve) => arrived.push(resolve));
      return received;
    },
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  };
}

/** The body of a mail, with its quoted-printable encoding undone. */
export function textOf({ raw }: Received): string {
  const body = raw.slice(raw.indexOf('\r\n\r\n') + 4);
  const bytes = body
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
