// The KV engine, version 2, at its mount `secret`: data, check-and-set, versions, metadata, lists and mounts.
import type { Step } from './steps.ts';

const words = 'what is expected is said in words of our own';
const limit = '1,000 versions are kept here, and OpenBao says 0 for its own limit of 10';

const missing: readonly Step[] = [
  { ask: 'GET secret/data/none' },
  { ask: 'GET secret/metadata/none' },
  { ask: 'GET secret/metadata?list=true' },
  { ask: 'DELETE secret/data/none' },
  { ask: 'DELETE secret/metadata/none' },
  ...['delete', 'undelete', 'destroy'].map((word) => ({ ask: `PUT secret/${word}/none`, body: { versions: [1] } })),
  { ask: 'GET secret/data/none', token: 'wrong' },
];

const data: readonly Step[] = [
  { ask: 'PUT secret/data/a/b', body: { data: { n: 1.5, word: 'ü', deep: [{ a: null }] }, options: { cas: 0 } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 2 }, options: { cas: 0 } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 2 }, options: { cas: -1 } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 2 }, options: { cas: null } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 2 }, options: { cas: '1' } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 3 } } },
  { ask: 'PUT secret/data/a/b', body: { data: {} } },
  { ask: 'PUT secret/data/a/b', body: { options: { cas: 4 } } },
  { ask: 'PUT secret/data/a/b', body: { data: [1] }, differs: words },
  { ask: 'GET secret/data/a/b' },
  { ask: 'GET secret/data/a/b?version=1' },
  { ask: 'GET secret/data/a/b?version=0' },
  { ask: 'GET secret/data/a/b?version=9' },
  { ask: 'GET secret/data/a/b?version=x', differs: words },
  { ask: 'GET secret/data/A/b' },
  { ask: 'PUT secret/data/a/c/d', body: { data: { n: 1 } } },
  { ask: 'PUT secret/data/a', body: { data: { n: 1 } } },
  { ask: 'GET secret/metadata?list=true' },
  { ask: 'GET secret/metadata/a?list=true' },
  { ask: 'GET secret/metadata/a/?list=true' },
  { ask: 'GET secret/metadata/a/b?list=true' },
];

const versions: readonly Step[] = [
  { ask: 'PUT secret/delete/a/b', body: { versions: ['1', 9] } },
  { ask: 'PUT secret/delete/a/b', body: { versions: '2' } },
  { ask: 'PUT secret/delete/a/b', body: {} },
  { ask: 'PUT secret/delete/a/b', body: { versions: [] } },
  { ask: 'PUT secret/undelete/a/b', body: {} },
  { ask: 'PUT secret/destroy/a/b', body: {} },
  { ask: 'PUT secret/destroy/a/b', body: { versions: ['x'] }, differs: words },
  { ask: 'PUT secret/destroy/a/b', body: { versions: [0] } },
  { ask: 'GET secret/data/a/b?version=1' },
  { ask: 'PUT secret/destroy/a/b', body: { versions: [2] } },
  { ask: 'PUT secret/undelete/a/b', body: { versions: [1, 2] } },
  { ask: 'GET secret/data/a/b?version=1' },
  { ask: 'GET secret/data/a/b?version=2' },
  { ask: 'DELETE secret/data/a/b' },
  { ask: 'GET secret/data/a/b' },
  { ask: 'GET secret/metadata/a/b' },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 5 }, options: { cas: 0 } } },
];

const metadata: readonly Step[] = [
  { ask: 'PUT secret/metadata/a/b', body: { max_versions: 2, cas_required: true, custom_metadata: { k: 'v' } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 5 } } },
  { ask: 'PUT secret/data/a/b', body: { data: { n: 5 }, options: { cas: 4 } } },
  { ask: 'GET secret/metadata/a/b' },
  { ask: 'GET secret/data/a/b' },
  { ask: 'GET secret/data/a/b?version=3' },
  { ask: 'PUT secret/metadata/a/b', body: { custom_metadata: { k: 1 } }, differs: words },
  { ask: 'PUT secret/metadata/a/b', body: { max_versions: 'x' }, differs: words },
  { ask: 'PUT secret/metadata/a/b', body: { delete_version_after: '1h' }, differs: 'no version is deleted by itself' },
  { ask: 'DELETE secret/metadata/a/b' },
  { ask: 'GET secret/data/a/b' },
  { ask: 'GET secret/metadata/a?list=true' },
  { ask: 'PUT secret/metadata/new', body: {}, differs: 'a flag to configure makes no keys' },
  { ask: 'GET secret/config', differs: limit },
  { ask: 'GET sys/mounts/secret' },
  { ask: 'GET sys/mounts/secret/tune' },
  { ask: 'GET sys/internal/ui/mounts/secret/a/b' },
];

export const kvSteps: readonly Step[] = [...missing, ...data, ...versions, ...metadata];
