// The one table from error codes of the operating system to words: why a call was refused, and how to fix it. It covers
// every code that Linux and the resolver return for calls that the product makes; `errors.ts` looks them up.

/** Why the system refused a call, and what to do about it. */
export type Words = readonly [reason: string, hint: string];

const denied: Words = ['permission denied', 'run as the user that owns it, or change its owner and mode'];
const tooManyOpen: Words = ['too many files are open', 'raise the limit of open files (ulimit -n)'];
const noMemory: Words = ['there is no memory left', 'free some, or raise the limits of this process (ulimit -v)'];
const notSupported: Words = ['the file system does not support this', 'choose another place, on another file system'];
const broken: Words = ['the device failed', 'check the disk'];
const damaged: Words = ['the file system is damaged', 'unmount and check it (fsck)'];
const locked: Words = ['its key is not there', 'unlock the encrypted directory, or log in to the file server again'];
const inUse: Words = ['something else uses it', 'end what uses it and try again'];
const again: Words = ['the system cannot do it now', 'try again'];

/** Refusals of file and process calls, by error code: all that Linux returns. */
export const systemWords: Readonly<Record<string, Words>> = {
  ENOENT: ['there is no such file or directory', 'check the path'],
  EEXIST: ['there is something of that name already', 'choose another name, or move that one away'],
  EACCES: denied,
  EPERM: denied,
  EISDIR: ['it is a directory', 'choose another file'],
  ENOTDIR: ['part of its path is not a directory', 'choose another place'],
  ENOTEMPTY: ['the directory is not empty', 'choose another, or empty it'],
  ENOSPC: ['the disk is full', 'free some space and try again'],
  EDQUOT: ['the quota is used up', 'free some space and try again'],
  EFBIG: ['the file may not grow any longer', 'raise the limit of file sizes (ulimit -f), or use another file system'],
  EOVERFLOW: ['it is too large', 'choose another file'],
  EROFS: ['the file system is read-only', 'mount it writable or choose another place'],
  EIO: broken,
  EREMOTEIO: broken,
  EHWPOISON: broken,
  EUCLEAN: damaged,
  EBADMSG: damaged,
  ENXIO: ['there is no such device, or nothing at the other end', 'check the path'],
  ENODEV: ['there is no such device', 'check the path'],
  ENOMEDIUM: ['there is no medium in the device', 'insert it, or choose another place'],
  EMEDIUMTYPE: ['the medium is of another kind', 'choose another place'],
  ESTALE: ['the file server no longer knows it', 'mount the file system again'],
  EHOSTDOWN: ['the file server does not answer', 'see that it runs, and that it can be reached'],
  ENOLINK: ['the connection to the file server is cut', 'mount the file system again'],
  EKEYEXPIRED: locked,
  EKEYREVOKED: locked,
  EKEYREJECTED: locked,
  ENOKEY: locked,
  ENAMETOOLONG: ['its name is too long', 'choose a shorter path'],
  EILSEQ: ['the file system does not allow such a name', 'choose another name'],
  ELOOP: ['its path has too many symbolic links, or is a link where none is followed', 'check the path'],
  EMLINK: ['it has too many links', 'choose another place'],
  EXDEV: ['it is on another file system', 'choose a place on the same one'],
  EMFILE: tooManyOpen,
  ENFILE: tooManyOpen,
  ENOMEM: noMemory,
  ENOBUFS: noMemory,
  EBUSY: inUse,
  ETXTBSY: ['it is a program that is running', 'end it and try again'],
  ENOLCK: ['the file system has no locks', 'choose a directory on another, or mount it with locks'],
  EDEADLK: inUse,
  EINVAL: notSupported,
  ENOSYS: notSupported,
  ENOTSUP: notSupported,
  EOPNOTSUPP: notSupported,
  ENOTSUPP: notSupported,
  ENOTTY: notSupported,
  ESPIPE: ['it is a pipe or a terminal', 'choose a file'],
  ENOEXEC: ['it is not a program', 'check the path'],
  E2BIG: ['its arguments are too long', 'give fewer or shorter ones'],
  ENODATA: ['nothing is there', 'check the path'],
  ESRCH: ['there is no such process', 'try again'],
  ECHILD: ['there is no such process', 'try again'],
  EPIPE: ['what reads it has gone away', 'try again'],
  EAGAIN: again,
  EWOULDBLOCK: again,
  EINTR: again,
  ECANCELED: again,
  ETIME: again,
};

const noWay: Words = ['there is no route to it', 'see that this machine has a network, and that the address is right'];
const brokenOff: Words = ['the connection was broken off', 'try again'];
const notAllowed: Words = ['the system does not allow it', "see this machine's firewall and the rights of this user"];
const unknownName: Words = ['its name is not known', 'see that the name is right'];
const noLookup: Words = ['its name could not be looked up', 'see that the name server of this machine answers'];

/** Refusals of network calls, by error code; codes missing here are in `systemWords`. */
export const networkWords: Readonly<Record<string, Words>> = {
  ECONNREFUSED: ['nothing listens there', 'see that it runs, and that the address and the port are right'],
  ECONNRESET: brokenOff,
  ECONNABORTED: brokenOff,
  EPIPE: brokenOff,
  ENETRESET: brokenOff,
  ESHUTDOWN: brokenOff,
  ENOTCONN: brokenOff,
  ETIMEDOUT: ['it does not answer', 'see that it runs, and that no firewall is in between'],
  EHOSTDOWN: noWay,
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ENETDOWN: noWay,
  ENONET: noWay,
  EADDRINUSE: ['another program has that address', 'end that one, or choose another address'],
  EADDRNOTAVAIL: ['it is not an address of this machine', 'choose one that is'],
  EAFNOSUPPORT: ['this machine has no such kind of address', 'use another address, IPv4 or IPv6'],
  EACCES: notAllowed,
  EPERM: notAllowed,
  ENOENT: ['there is no such socket', 'see that it runs, and that the path is right'],
  EPROTO: ['it does not speak the protocol that was expected', 'see that address and port are right'],
  EPROTONOSUPPORT: ['this machine does not have the protocol', 'use another address'],
  EPROTOTYPE: ['it is a socket of another kind', 'see that the path is right'],
  EMSGSIZE: ['the message is too long', 'send less'],
  ENOTFOUND: unknownName,
  EAI_NONAME: unknownName,
  EAI_NODATA: unknownName,
  EAI_ADDRFAMILY: unknownName,
  EAI_AGAIN: noLookup,
  EAI_FAIL: noLookup,
  EAI_MEMORY: noMemory,
};

/** Linux error numbers that Node has no name for; it reports them as `Unknown system error -122`. */
export const unnamed: Readonly<Record<string, string>> = {
  '-10': 'ECHILD',
  '-35': 'EDEADLK',
  '-37': 'ENOLCK',
  '-62': 'ETIME',
  '-67': 'ENOLINK',
  '-74': 'EBADMSG',
  '-102': 'ENETRESET',
  '-116': 'ESTALE',
  '-117': 'EUCLEAN',
  '-122': 'EDQUOT',
  '-123': 'ENOMEDIUM',
  '-124': 'EMEDIUMTYPE',
  '-126': 'ENOKEY',
  '-127': 'EKEYEXPIRED',
  '-128': 'EKEYREVOKED',
  '-129': 'EKEYREJECTED',
  '-133': 'EHWPOISON',
  '-524': 'ENOTSUPP',
};
