// Actions on managed keys, by their names in the activity log.

/** Records from before managed keys had their name say `transit`. */
export function isAboutKey(action: string): boolean {
  return action.startsWith('key.') || action.startsWith('transit.');
}
