// Preloaded before a program, turns this Node.js into Node.js 20: removes what the language and the web platform gained
// since then. The names are those that 26.10 has and 20.20 lacks, as listed from their own globals.
const later = {
  Object: ['groupBy'],
  Array: ['fromAsync'],
  Promise: ['withResolvers', 'try'],
  RegExp: ['escape'],
  Error: ['isError'],
  JSON: ['rawJSON', 'isRawJSON'],
  Math: ['f16round'],
  Intl: ['DurationFormat'],
  ArrayBuffer: ['transfer', 'transferToFixedLength', 'detached'],
  Atomics: ['pause'],
  Uint8Array: ['fromBase64', 'fromHex', 'toBase64', 'setFromBase64', 'toHex', 'setFromHex'],
  DataView: ['getFloat16', 'setFloat16'],
  Map: ['groupBy', 'getOrInsert', 'getOrInsertComputed'],
  Set: ['difference', 'intersection', 'isSubsetOf', 'isSupersetOf', 'isDisjointFrom', 'symmetricDifference', 'union'],
  WeakMap: ['getOrInsert', 'getOrInsertComputed'],
  Iterator: [
    'drop',
    'every',
    'filter',
    'find',
    'flatMap',
    'forEach',
    'map',
    'reduce',
    'some',
    'take',
    'toArray',
    'from',
    'concat',
    'zip',
    'zipKeyed',
  ],
  Blob: ['textStream'],
  Request: ['textStream'],
  Response: ['textStream'],
  SubtleCrypto: ['supports', 'getPublicKey', 'encapsulateBits', 'encapsulateKey', 'decapsulateBits', 'decapsulateKey'],
  globalThis: [
    'Float16Array',
    'Iterator',
    'QuotaExceededError',
    'URLPattern',
    'CloseEvent',
    'ErrorEvent',
    'WebSocket',
    'Temporal',
    'SuppressedError',
    'DisposableStack',
    'AsyncDisposableStack',
    'Navigator',
    'navigator',
    'Storage',
    'localStorage',
    'sessionStorage',
  ],
};
/** Node's own `fetch` needs it: callers within Node still find it on `Promise`. */
const neededByNode = Promise.withResolvers;
for (const [name, members] of Object.entries(later)) {
  const owner = globalThis[name];
  for (const member of members) {
    delete owner[member];
    if (owner.prototype) delete owner.prototype[member];
  }
}
Object.defineProperty(Promise, 'withResolvers', {
  get: () => (new Error().stack.split('\n')[2].includes('(node:') ? neededByNode : undefined),
});
