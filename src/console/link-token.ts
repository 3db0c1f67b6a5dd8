// The one-time token of the link by which somebody came. It is taken out of the address at once, so that it stays in no history, bookmark
// or screenshot, and is kept nowhere but in memory: loading the page again needs the link again.

export function takeToken(): string | undefined {
  const { search, pathname, hash } = window.location;
  const query = new URLSearchParams(search);
  const token = query.get('token') ?? undefined;
  query.delete('token');
  const rest = query.size > 0 ? `?${query}` : '';
  if (token !== undefined) window.history.replaceState(null, '', pathname + rest + hash);
  return token;
}
