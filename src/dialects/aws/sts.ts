// The two actions of AWS's token service that clients of AWS KMS use: AssumeRoleWithWebIdentity, by which programs get
// credentials for a signed token instead of a stored secret, and GetCallerIdentity. Answers are XML.
import type { AwsSession } from '../../core/proofs/aws-sessions.ts';
import type { JsonObject } from '../../model/json.ts';
import { type Failure, failed } from './errors.ts';

const namespace = 'https://sts.amazonaws.com/doc/2011-06-15/';
const version = '2011-06-15';

/** A refusal of the token service, which has names of its own. */
export interface StsFailure {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

/** The names that the token service has for refusals of signed requests. */
const stsCodes: Readonly<Record<string, readonly [code: string, status: number]>> = {
  UnrecognizedClientException: ['InvalidClientTokenId', 403],
  InvalidSignatureException: ['SignatureDoesNotMatch', 403],
  ExpiredTokenException: ['ExpiredToken', 403],
  MissingAuthenticationTokenException: ['MissingAuthenticationToken', 403],
  IncompleteSignatureException: ['IncompleteSignature', 400],
  UnknownOperationException: ['InvalidAction', 400],
  AccessDeniedException: ['AccessDenied', 403],
  ThrottlingException: ['Throttling', 400],
  ServiceUnavailableException: ['ServiceUnavailable', 503],
  KMSInternalException: ['InternalFailure', 500],
};

/** A refusal of AWS KMS in the words of the token service. */
export function stsFailureOf({ type, message = type }: Failure): StsFailure {
  const [code, status] = stsCodes[type] ?? ['ValidationError', 400];
  return { code, message, status };
}

export function stsError({ code, message, status }: StsFailure, requestId: string): string {
  const type = status < 500 ? 'Sender' : 'Receiver';
  const error = `<Error><Type>${type}</Type><Code>${code}</Code><Message>${escaped(message)}</Message></Error>`;
  return `<ErrorResponse xmlns="${namespace}">${error}<RequestId>${requestId}</RequestId></ErrorResponse>`;
}

/** A request to assume a role: the role is an API key, the account a tenant. */
interface AssumedRole {
  readonly account: string;
  readonly role: string;
  readonly sessionName: string;
  readonly token: string;
  readonly seconds: number | undefined;
}

const sessionName = /^[\w+=,.@-]{2,64}$/;

export function assumedRole(form: URLSearchParams): AssumedRole | Failure {
  const invalid = (message: string): Failure => failed('ValidationException', message);
  if (form.get('Version') !== version) return invalid(`expected Version ${version}`);
  if ([...form.keys()].some((name) => name.startsWith('Policy'))) {
    return invalid('Policy is not supported: the session has the flags of the API key');
  }
  const [, account = '', role = ''] = /^arn:aws:iam::(\d{12}):role\/(.{1,256})$/.exec(form.get('RoleArn') ?? '') ?? [];
  if (role === '') return invalid('expected RoleArn arn:aws:iam::ACCOUNT:role/ROLE');
  const name = form.get('RoleSessionName') ?? '';
  if (!sessionName.test(name)) return invalid('expected RoleSessionName of 2 to 64 letters, digits and +=,.@-_');
  // Some clients send the line end of the file in which they found it.
  const token = (form.get('WebIdentityToken') ?? '').trimEnd();
  if (token === '') return invalid('WebIdentityToken is missing');
  const duration = form.get('DurationSeconds');
  const seconds = duration === null ? undefined : Number(duration);
  if (seconds !== undefined && !(Number.isInteger(seconds) && seconds >= 900 && seconds <= 43_200)) {
    return invalid('expected DurationSeconds from 900 to 43200');
  }
  return { account, role: role.slice(role.lastIndexOf('/') + 1), sessionName: name, token, seconds };
}

interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

function roleArn(account: string, { role, name }: AwsSession): string {
  return `arn:aws:sts::${account}:assumed-role/${role}/${name}`;
}

export function assumedAnswer(
  { account, role, sessionName: name }: AssumedRole,
  { accessKeyId, secretAccessKey }: Credentials,
  session: JsonObject,
  requestId: string,
): string {
  const fields = {
    SubjectFromWebIdentityToken: String(session.subject),
    Audience: 'kms',
    AssumedRoleUser: {
      Arn: roleArn(account, { role, name }),
      AssumedRoleId: `${String(session.keyid)}:${name}`,
    },
    Credentials: {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      SessionToken: String(session.accessToken),
      Expiration: new Date(Number(session.expiresAt)).toISOString(),
    },
  };
  return answer('AssumeRoleWithWebIdentity', fields, requestId);
}

export function callerAnswer(
  account: string,
  keyid: string,
  session: AwsSession | undefined,
  requestId: string,
): string {
  const fields = session
    ? { Arn: roleArn(account, session), UserId: `${keyid}:${session.name}`, Account: account }
    : { Arn: `arn:aws:iam::${account}:user/${keyid}`, UserId: keyid, Account: account };
  return answer('GetCallerIdentity', fields, requestId);
}

type Fields = { readonly [name: string]: string | Fields };

function answer(action: string, fields: Fields, requestId: string): string {
  const result = `<${action}Result>${written(fields)}</${action}Result>`;
  const metadata = `<ResponseMetadata><RequestId>${requestId}</RequestId></ResponseMetadata>`;
  return `<${action}Response xmlns="${namespace}">${result}${metadata}</${action}Response>`;
}

function written(fields: Fields): string {
  return Object.entries(fields)
    .map(([name, value]) => `<${name}>${typeof value === 'string' ? escaped(value) : written(value)}</${name}>`)
    .join('');
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"]/g, (each) => entities[each] ?? each).replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/g, '?');
}
