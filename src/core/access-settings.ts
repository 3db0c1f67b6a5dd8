// How long what people get in with lives, and where the pages that they are sent to lie.

/** Milliseconds each. */
export interface Lifetimes {
  /** An access token. */
  readonly access: number;
  /** A chain of refreshes, from the login on. */
  readonly session: number;
  readonly invite: number;
  readonly reset: number;
}

const hour = 3_600_000;

export const defaultLifetimes: Lifetimes = { access: hour, session: 12 * hour, invite: 168 * hour, reset: hour };

export interface LinkSettings {
  readonly lifetimes: Lifetimes;
  /** The tenant's address as people reach it, without a slash at the end. */
  readonly baseUrl: string;
}

/** The page of the console that a one-time token is for. */
export function linkTo(page: 'invite' | 'reset' | 'set-up', token: string, { baseUrl }: LinkSettings): string {
  return `${baseUrl}/console/${page}?token=${token}`;
}
