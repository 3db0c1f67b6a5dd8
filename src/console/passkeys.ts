// Passkeys as the browser makes and uses them. What goes wrong there is told in words: mostly somebody changed their
// mind, which browsers do not tell from a passkey that is not at hand.
import { browserSupportsWebAuthn, startAuthentication, startRegistration } from '@simplewebauthn/browser';
import type { AnswerTo, InputOf } from '../client/client.ts';
import { FieldProblems } from './error-text.ts';

/** Whether there can be any on this page: not at an address of numbers, and not without HTTPS. */
export const canUsePasskeys =
  browserSupportsWebAuthn() && window.isSecureContext && !/^[\d.]+$|^\[/.test(window.location.hostname);

type CreationOptions = Parameters<typeof startRegistration>[0]['optionsJSON'];
type RequestOptions = Parameters<typeof startAuthentication>[0]['optionsJSON'];

/** Throws `FieldProblems` where none was made. */
export async function makePasskey(options: AnswerTo<'beginPasskey'>): Promise<InputOf<'finishPasskey'>['credential']> {
  try {
    // Cast: transports are whatever the browser said that they are.
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

/** Throws `FieldProblems` where none was used. */
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
