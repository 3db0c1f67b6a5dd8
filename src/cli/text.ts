// Text for people: escaped for terminals if it comes from elsewhere, cut to width, with ids and times shortened.
import { parseTimestamp } from '../model/timestamp.ts';

/**
 * Control characters, line and paragraph separators, byte order mark, characters that change the direction of text or
 * have no width, and tag characters.
 */
const unsafe =
  /[\p{Cc}\p{Cs}\u2028\u2029\ufeff\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** `text` on one line, with every character that would be invisible or misleading written as an escape. */
export function visible(text: string): string {
  return text.replace(unsafe, (character) => {
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code > 0xffff) return `\\u{${digits}}`;
    return code < 0x100 ? `\\x${digits.padStart(2, '0')}` : `\\u${digits.padStart(4, '0')}`;
  });
}

let segmenter: Intl.Segmenter | undefined;
/** Created on first use: it takes 15 ms, too much for a server's start. */
function graphemes(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/**
 * Takes no cell: marks, Hangul vowels and finals that join a syllable, and other characters drawn with their neighbour.
 */
const joined = /^[\p{M}\p{Cf}\u1160-\u11ff\ud7b0-\ud7ff]$/u;
const emoji = /^(?:\p{Emoji_Presentation}|\p{Regional_Indicator}{2}|\p{Emoji}\ufe0f)/u;
/** Two cells each: East Asian scripts and full-width forms (Unicode's East_Asian_Width W and F, without emoji). */
const wide =
  /^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]$/u;

/** Terminal cells that the text takes, approximately. */
export function width(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  let cells = 0;
  for (const { segment } of graphemes(text)) cells += cellsOf(segment);
  return cells;
}

function cellsOf(grapheme: string): number {
  if (emoji.test(grapheme)) return 2;
  let cells = 0;
  for (const character of grapheme) cells += joined.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return cells;
}

/** `text` in at most `cells` cells, its end replaced by an ellipsis if it is too long. */
export function shorten(text: string, cells: number): string {
  if (width(text) <= cells) return text;
  let short = '';
  let room = cells - 1;
  for (const { segment } of graphemes(text)) {
    room -= cellsOf(segment);
    if (room < 0) break;
    short += segment;
  }
  return `${short}…`;
}

/** A word of a name with the separators behind it. */
const namePart = /[^-._/@ ]*[-._/@ ]+|[^-._/@ ]+/g;

/**
 * `text` in parts of at most `cells` cells, ended after separators. A word that no part has room for begins on the
 * part before it unless that is half full, and is broken where the room ends.
 */
export function wrapped(text: string, cells: number): string[] {
  if (width(text) <= cells) return [text];
  const parts: string[] = [];
  let part = '';
  for (const [word] of text.matchAll(namePart)) {
    if (width(part) + width(word.trimEnd()) <= cells) {
      part += word;
      continue;
    }
    const isLong = width(word.trimEnd()) > cells;
    if (part !== '' && (!isLong || width(part) * 2 >= cells)) {
      parts.push(part);
      part = '';
    }
    const broken = isLong ? cutAt(part + word, cells) : [part + word];
    parts.push(...broken.slice(0, -1));
    part = broken.at(-1) ?? '';
  }
  return [...parts, part].map((each) => each.trimEnd());
}

/** `text` in parts of `cells` cells, wherever they end. */
function cutAt(text: string, cells: number): string[] {
  const parts: string[] = [];
  let part = '';
  for (const { segment } of graphemes(text)) {
    if (part !== '' && width(part) + cellsOf(segment) > cells) {
      parts.push(part);
      part = '';
    }
    part += segment;
  }
  return [...parts, part];
}

/** Words of a sentence; a command between backticks is one, so that it can be copied. */
const word = /(?:[^\s`]*`[^`]*`[^\s`]*)+|\S+/g;

/**
 * `text` in lines of at most `cells` cells, broken between words. A longer word is left to the terminal, which goes on
 * with it in the next line. Without a width, and where all of it fits, it is one line.
 */
export function inLines(text: string, cells: number | undefined): readonly string[] {
  if (!cells || width(text) <= cells) return [text];
  const lines: string[] = [];
  let line = '';
  for (const [each] of text.matchAll(word)) {
    if (line !== '' && width(line) + 1 + width(each) > cells) {
      lines.push(line);
      line = each;
    } else line = line === '' ? each : `${line} ${each}`;
  }
  return [...lines, line];
}

/** How times are shortened: to their age or distance as of `now` in epoch milliseconds, or the time of day. */
export type ShortTimes = { readonly now: number } | 'clock';

const idForm = /\b([a-z]{2,12}_)[0-9a-hjkmnp-tv-z]{20}([0-9a-hjkmnp-tv-z]{6})\b/g;
const timeForm = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** `text` with every id cut to its kind and last letters, and every time in UTC as people say it. */
export function inShort(text: string, times: ShortTimes): string {
  return text.replace(idForm, '$1…$2').replace(timeForm, (whole) => {
    const at = parseTimestamp(whole);
    if (at === undefined) return whole;
    return times === 'clock' ? clockTime(at) : distanceText(at, times.now);
  });
}

/** A value that is a time, as people read it: in the local time zone, with its age or distance; others unchanged. */
export function readableTime(value: string, now: number): string {
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(value) ? parseTimestamp(value) : undefined;
  if (at === undefined) return value;
  const distance = distanceText(at, now);
  const whole = `${localDate(at)} ${clockTime(at)}`;
  return distance === localDate(at) ? whole : `${whole} (${distance})`;
}

/** A time, in epoch milliseconds or as text, as people say it now: its age, its distance or its date. */
export function agoText(at: number | string): string {
  return inShort(typeof at === 'number' ? new Date(at).toISOString() : at, { now: Date.now() });
}

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
/** Beyond this, a date says more than a number of days. */
const mostDays = 100;

function distanceText(at: number, now: number): string {
  const distance = Math.abs(now - at);
  if (distance < 10 * second) return 'just now';
  const count = (unit: number): number => Math.floor(distance / unit);
  if (count(day) > mostDays) return localDate(at);
  const days = count(day) === 1 ? '1 day' : `${count(day)} days`;
  const text =
    distance < minute
      ? `${count(second)} s`
      : distance < hour
        ? `${count(minute)} min`
        : distance < day
          ? `${count(hour)} h`
          : days;
  return at > now ? `in ${text}` : `${text} ago`;
}

/** The day in the local time zone. */
function localDate(at: number): string {
  const date = new Date(at);
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(twoDigits).join('-');
}

/** The time of day in the local time zone. */
function clockTime(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':');
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
