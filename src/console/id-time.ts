// When something was made, read from its id.

/** When an id was made: its ULID begins with the time, in milliseconds since 1970. */
export function idTime(id: string): number | undefined {
  const [, text] = /^[a-z]+_([0-7][0-9a-hjkmnp-tv-z]{9})[0-9a-hjkmnp-tv-z]{16}$/.exec(id) ?? [];
  if (text === undefined) return undefined;
  return [...text].reduce((time, digit) => time * 32 + '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit), 0);
}
