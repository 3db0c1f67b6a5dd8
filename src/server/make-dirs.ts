// Directories level by level, for the server and for the commands that load its code.
export { makeDirs } from '../store/make-dirs.ts';
