// The formats of streamed records. A line is the exported record preceded by the tenant: without those two fields it is
// byte for byte an export's line, so collected lines can be verified like an export. A syslog message (RFC 5424) has
// the same line after a header and structured data.
import { exportLine } from '../../core/activity.ts';
import type { ChainedActivity } from '../../store/port.ts';

/** The tenant of the activity. */
export interface StreamedTenant {
  readonly id: string;
  readonly name: string;
}

/** `{"tenant":"<name>","tenantId":"<id>","hash":"<hash>",<the rest of the record>}` and a line feed. */
export function streamedLine({ id, name }: StreamedTenant, { line, hash }: ChainedActivity): string {
  return `{"tenant":${JSON.stringify(name)},"tenantId":${JSON.stringify(id)},${exportLine(line, hash).slice(1)}`;
}

/** RFC 5424 §6.2.1: facility 13, log audit. */
const audit = 13 * 8;
const informational = 6;
const warning = 4;
/** The project has no enterprise number of its own; RFC 5612 reserves this one for examples. */
const structureId = 'kms@32473';

/** @param hostname this machine's name, as returned by `headerWord`. */
export function syslogMessage(tenant: StreamedTenant, chained: ChainedActivity, hostname: string): string {
  const { seq, id, action, validAction, createdAt } = chained.record;
  const priority = audit + (validAction ? informational : warning);
  const data = {
    tenant: tenant.name,
    seq: String(seq),
    action,
    verdict: validAction ? 'granted' : 'denied',
    id,
    hash: chained.hash,
  };
  const params = Object.entries(data).map(([name, value]) => `${name}="${paramValue(value)}"`);
  const header = `<${priority}>1 ${timeOf(createdAt)} ${hostname} kms - activity`;
  // No byte order mark, which JSON readers would trip over: MSG-ANY of RFC 5424 §6.4.
  return `${header} [${structureId} ${params.join(' ')}] ${streamedLine(tenant, chained).trimEnd()}`;
}

/** Octet counting (RFC 6587 §3.4.1, RFC 5425 §4.3): the length in bytes, a space, the message. */
export function octetCounted(message: string): string {
  return `${Buffer.byteLength(message)} ${message}`;
}

/** A word of a header (RFC 5424 §6): printable ASCII; the nil value if nothing is left. */
export function headerWord(text: string): string {
  return text.replace(/[^!-~]/g, '').slice(0, 255) || '-';
}

/** The nil value if a record's time is outside the range of dates. */
function timeOf(createdAt: number): string {
  return createdAt >= 0 && createdAt <= 253_402_300_799_999 ? new Date(createdAt).toISOString() : '-';
}

/** Actions of client programs may be any text; longer ones are complete only in the JSON. */
const longestParam = 256;

/**
 * Escaped as in RFC 5424 §6.3.3; control characters, which some receivers take for the end of a message, become spaces.
 */
function paramValue(text: string): string {
  const shown = text.toWellFormed().slice(0, longestParam).toWellFormed();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return shown.replace(/[\x00-\x1f\x7f-\x9f]/g, ' ').replace(/["\\\]]/g, '\\$&');
}
