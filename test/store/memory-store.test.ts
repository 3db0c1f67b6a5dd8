// The tests' memory store fulfils the store contract.
import { createMemoryStore } from '../support/memory-store.ts';
import { contractMigrations, noteTables, storeContract } from './contract.ts';

storeContract('memory store', () => createMemoryStore({ migrations: contractMigrations, tables: noteTables }));
