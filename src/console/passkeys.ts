// Creates and uses passkeys through the browser. Failures become messages in words: mostly the user changed their mind,
// which browsers do not distinguish from a missing passkey.
import {
  browserSupportsWebAuthn,
  bufferToBase64URLString,
  startAuthentication,
  startRegistration,
} from '@simplewebauthn/browser';
import type { AnswerTo, InputOf } from '../client/client.ts';
import { FieldProblems } from './error-text.ts';

/** Why this page cannot use passkeys, which need HTTPS and a host name; undefined if it can. */
export const passkeyHindrance = hindrance();
export const canUsePasskeys = passkeyHindrance === undefined;

function hindrance(): string | undefined {
  const isNamed = !/^[\d.]+$|^\[/.test(window.location.hostname);
  if (!window.isSecureContext) {
    return isNamed
      ? 'Passkeys need HTTPS, which this page does not have.'
      : 'Passkeys need HTTPS and a host name; this page has neither.';
  }
  if (!isNamed) return 'Passkeys need a host name, and the address of this page has none.';
  return browserSupportsWebAuthn() ? undefined : 'This browser does not support passkeys.';
}

type CreationOptions = Parameters<typeof startRegistration>[0]['optionsJSON'];
type RequestOptions = Parameters<typeof startAuthentication>[0]['optionsJSON'];

/** Throws `FieldProblems` if none was created. */
export async function makePasskey(options: AnswerTo<'beginPasskey'>): Promise<InputOf<'finishPasskey'>['credential']> {
  try {
    // Cast: transports are the browser's own words.
    const optionsJSON = options as CreationOptions;
    const { id, rawId, response } = await startRegistration({ optionsJSON });
    const { clientDataJSON, attestationObject, transports } = response;
    return {
      id,
      rawId,
      type: 'public-key',
      response: { clientDataJSON, attestationObject, ...(transports && { transports }) },
    };
  } catch (error) {
    const isKnown = error instanceof Error && error.name === 'InvalidStateError';
    throw new FieldProblems(
      {},
      isKnown ? 'You have a passkey there already.' : 'No passkey was made. Try again, or add an app instead.',
    );
  }
}

/** SHA-256 of a text in base64url, on pages that can use passkeys. */
export async function digestOf(text: string): Promise<string> {
  return bufferToBase64URLString(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}

/** Throws `FieldProblems` if none was used. */
export async function usePasskey(
  options: AnswerTo<'passkeyLoginOptions'>,
): Promise<InputOf<'loginWithPasskey'>['credential']> {
  try {
    // Cast: as above.
    const optionsJSON = options as RequestOptions;
    const { id, rawId, response } = await startAuthentication({ optionsJSON });
    const { clientDataJSON, authenticatorData, signature, userHandle } = response;
    const answered = { clientDataJSON, authenticatorData, signature, ...(userHandle !== undefined && { userHandle }) };
    return { id, rawId, type: 'public-key', response: answered };
  } catch {
    throw new FieldProblems({}, 'No passkey was used.');
  }
}
