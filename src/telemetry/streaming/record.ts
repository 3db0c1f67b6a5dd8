// What a record looks like to those who are told of it. A line is the record as it is exported, with the tenant in
// front: without those two fields it is byte for byte the line of an export, so what was collected can be verified like
// one. A syslog message (RFC 5424) has the same line behind a header and structured data.
import { exportLine } from '../../core/activity.ts';
import type { ChainedActivity } from '../../store/port.ts';

/** Whose activity it is. */
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
/** The project has no enterprise number of its own; RFC 5612 sets this one aside for examples. */
const structureId = 'kms@32473';

/** `hostname` is what `headerWord` made of this machine's. */
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
  // Without a byte order mark, which those who read the JSON would stumble over: MSG-ANY of RFC 5424 §6.4.
  return `${header} [${structureId} ${params.join(' ')}] ${streamedLine(tenant, chained).trimEnd()}`;
}

/** RFC 6587 §3.4.1, RFC 5425 §4.3: the length in bytes, a space, the message. */
export function octetCounted(message: string): string {
  return `${Buffer.byteLength(message)} ${message}`;
}

/** A word of a header (RFC 5424 §6): printable ASCII; the nil value where nothing is left. */
export function headerWord(text: string): string {
  return text.replace(/[^!-~]/g, '').slice(0, 255) || '-';
}

/** The nil value for a time that a record claims and no date can say. */
function timeOf(createdAt: number): string {
  return createdAt >= 0 && createdAt <= 253_402_300_799_999 ? new Date(createdAt).toISOString() : '-';
}

/** An action that a program made up may be any text: longer ones stand whole in the JSON alone. */
const longestParam = 256;

/** RFC 5424 §6.3.3; control characters, which some receivers take for the end of a message, become spaces. */
function paramValue(text: string): string {
  const shown = text.toWellFormed().slice(0, longestParam).toWellFormed();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return shown.replace(/[\x00-\x1f\x7f-\x9f]/g, ' ').replace(/["\\\]]/g, '\\$&');
}
