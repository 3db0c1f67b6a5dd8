// The tests' thread that hashes passwords.
import { parentPort } from 'node:worker_threads';
import { servePasswords } from '../../src/platform/threads/passwords.ts';

if (parentPort) servePasswords(parentPort);
