// Restricts which proofs of the password a PostgreSQL server gets at sign-in. With TLS and a verified certificate any
// is allowed, and SCRAM is bound to the connection. Without TLS the server may be an impostor, even on this machine:
// only SCRAM is allowed, which reveals the password to no server that does not have it.
import type { Duplex } from 'node:stream';
import type { Client } from 'pg';
import { KmsError } from '../../errors.ts';

/**
 * RFC 7677 §4, and the default of PostgreSQL. With fewer, an impostor could test guesses against the proof that much
 * faster.
 */
const leastIterations = 4096;

interface ServerMessage {
  /** The SCRAM text, if the message has one. */
  readonly data?: string;
}

/** Handlers and members of pg's client that its types leave out. */
interface SignIn {
  _handleAuthCleartextPassword(message: ServerMessage): void;
  _handleAuthMD5Password(message: ServerMessage): void;
  _handleAuthSASLContinue(message: ServerMessage): Promise<void>;
  /** Set while SCRAM is under way: the server has not yet proved that it knows the password. */
  readonly saslSession?: object | null;
  readonly connection: {
    emit(event: 'error', error: Error): void;
    on(event: 'authenticationOk', run: () => void): void;
    /** Starts to read from the stream. */
    attachListeners(stream: Duplex): void;
  };
}

/** Must be called before the client connects. `tls`: whether the server's certificate is verified. */
export function guardSignIn(client: Client, tls: boolean): void {
  // Cast: see `SignIn`; the handlers' presence is checked below.
  const signIn = client as unknown as SignIn;
  const { connection } = signIn;
  const goOn = signIn._handleAuthSASLContinue;
  const { _handleAuthCleartextPassword, _handleAuthMD5Password } = signIn;
  const known = [goOn, _handleAuthCleartextPassword, _handleAuthMD5Password, connection.attachListeners];
  if (!known.every((handler) => typeof handler === 'function')) {
    throw new KmsError('internal', 'this version of pg signs in by other means than are guarded');
  }
  guardParser(connection);
  const refuse = (what: string): void => connection.emit('error', refusal(what));
  // A server that breaks off SCRAM and accepts anyway has not proved its identity.
  connection.on('authenticationOk', () => {
    if (signIn.saslSession) refuse('breaks off before it has proved that it knows the password');
  });
  if (tls) return;
  signIn._handleAuthCleartextPassword = () => refuse('asks for the password in clear');
  signIn._handleAuthMD5Password = () => refuse('asks for an MD5 hash of the password');
  signIn._handleAuthSASLContinue = async (message) => {
    const iterations = Number(/(?:^|,)i=(\d{1,9})(?:,|$)/.exec(message.data ?? '')?.[1] ?? 0);
    if (iterations >= leastIterations) return goOn.call(signIn, message);
    refuse(`asks for SCRAM with ${iterations} iterations, expected ${leastIterations} or more`);
  };
}

/** On a malformed message pg's parser throws where no caller can catch it, which would end the process. */
function guardParser(connection: SignIn['connection']): void {
  const attach = connection.attachListeners;
  connection.attachListeners = (stream) => {
    const before = new Set(stream.listeners('data'));
    attach.call(connection, stream);
    for (const listener of stream.listeners('data')) {
      if (before.has(listener)) continue;
      // Cast: a stream types its listeners as functions of anything.
      const read = listener as (piece: Uint8Array) => void;
      stream.off('data', read);
      stream.on('data', (piece: Uint8Array) => {
        try {
          read.call(stream, piece);
        } catch (cause) {
          stream.destroy(new KmsError('unavailable', 'it does not speak the protocol of PostgreSQL', { cause }));
        }
      });
    }
  };
}

function refusal(what: string): KmsError {
  return new KmsError('refused', `it ${what}, which is not answered without TLS`, {
    hint:
      'see who listens there; set password_encryption = scram-sha-256 on the server, set the password again, and write ' +
      'scram-sha-256 in its pg_hba.conf; or use sslmode=verify-full',
  });
}
