// How many mails one user can be made to get: asking for a reset link needs no credential.

export interface MailLimit {
  /** Whether one more may be sent; counts it when so. */
  allows(user: string): boolean;
}

export interface MailLimitOptions {
  /** Milliseconds. */
  now(): number;
  readonly most?: number;
  readonly within?: number;
  /** Users remembered; the longest untouched goes first. */
  readonly remembered?: number;
}

export function mailLimit({ now, most = 5, within = 3_600_000, remembered = 10_000 }: MailLimitOptions): MailLimit {
  const sent = new Map<string, readonly number[]>();
  return {
    allows(user) {
      const recent = (sent.get(user) ?? []).filter((time) => time > now() - within);
      const allowed = recent.length < most;
      sent.delete(user);
      sent.set(user, allowed ? [...recent, now()] : recent);
      const [oldest] = sent.keys();
      if (sent.size > remembered && oldest !== undefined) sent.delete(oldest);
      return allowed;
    },
  };
}
