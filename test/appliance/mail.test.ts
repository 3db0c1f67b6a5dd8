// Sending mail by SMTP: one addressee, TLS where it is required, and errors that reveal neither link nor address.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, test } from 'node:test';
import { type MailSettings, parseSmtpUrl, smtpMailer } from '../../src/appliance/mail.ts';
import { inviteMail } from '../../src/core/links.ts';
import { KmsError } from '../../src/errors.ts';
import { certificate } from '../support/localhost-certificate.ts';
import { drip, flood, oddServer, type Say } from '../support/odd-server.ts';
import { startSmtpServer, textOf } from '../support/smtp-server.ts';

const from = 'kms@example.org';
const user = { email: 'ada@example.org', username: 'ada', displayName: 'Ada Lovelace' };
const url = 'https://kms.example.org/console/invite?token=kmsin_0123456789012345678901234567890123456789012';
const mail = inviteMail(user, url, Date.UTC(2026, 0, 2, 3, 4));

async function serverWith(options: Parameters<typeof startSmtpServer>[0] = {}) {
  const server = await startSmtpServer(options);
  after(() => server.close());
  return server;
}

async function failureOf(settings: MailSettings): Promise<KmsError> {
  try {
    await smtpMailer(settings).send(mail);
  } catch (error) {
    assert.ok(error instanceof KmsError && error.code === 'unavailable');
    return error;
  }
  assert.fail('the mail went out');
}

test('a mail arrives at one address, with its link whole', async () => {
  const server = await serverWith();
  await smtpMailer(parseSmtpUrl(`smtp://127.0.0.1:${server.port}`, from)).send(mail);
  const [got] = await server.mails(1);
  assert.ok(got);
  assert.equal(got.from, from);
  assert.deepEqual(got.to, ['ada@example.org']);
  assert.match(got.raw, /^Subject: Your invitation/m);
  assert.ok(textOf(got).includes(url));
  assert.ok(textOf(got).includes('until 2026-01-02 03:04 UTC'));
});

test('a name or an address adds no header and no addressee', async () => {
  const server = await serverWith();
  const mailer = smtpMailer(parseSmtpUrl(`smtp://127.0.0.1:${server.port}`, from));
  const displayName = 'Ada\r\nBcc: eve@example.org\r\n\r\nhello';
  await mailer.send(inviteMail({ ...user, displayName }, url, 0));
  await mailer
    .send({ to: 'ada@example.org, eve@example.org', subject: 'a\r\nBcc: eve@example.org', text: 'x' })
    .catch(() => {});
  for (const got of server.received) {
    assert.ok(!got.to.includes('eve@example.org'));
    assert.doesNotMatch(got.raw, /^Bcc:/im);
  }
});

test('with credentials, over STARTTLS, to a server that is trusted', async () => {
  const server = await serverWith({
    authOptional: false,
    onAuth: ({ username, password }, _session, done) =>
      password === 'p@ss:word' ? done(null, { user: username }) : done(new Error('no')),
  });
  const settings: MailSettings = {
    host: '127.0.0.1',
    port: server.port,
    tls: 'required',
    user: 'relay',
    password: 'p@ss:word',
    from,
    ca: certificate,
  };
  await smtpMailer(settings).send(mail);
  const [got] = await server.mails(1);
  assert.deepEqual([got?.secure, got?.user], [true, 'relay']);

  const refused = await failureOf({ ...settings, password: 'wrong-4711' });
  assert.match(refused.message, /EAUTH/);
  assert.doesNotMatch(JSON.stringify(refused) + refused.message + String(refused.cause), /wrong-4711|kmsin_/);
  const { ca: _, ...untrusting } = settings;
  await failureOf(untrusting);
  assert.equal(server.received.length, 1);
});

test('where TLS is required, a server without it gets nothing', async () => {
  const server = await serverWith({ hideSTARTTLS: true, disabledCommands: ['STARTTLS'] });
  await failureOf({ host: '127.0.0.1', port: server.port, tls: 'required', from });
  assert.equal(server.received.length, 0);
});

test('a refusal and a dead server are one error each, without the link and the address', async () => {
  const server = await serverWith({
    onRcptTo: ({ address }, _session, done) => done(new Error(`no such mailbox ${address}`)),
  });
  const refused = await failureOf(parseSmtpUrl(`smtp://127.0.0.1:${server.port}`, from));
  assert.doesNotMatch(refused.message, /kmsin_|ada@/);

  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
  const address = closed.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  await new Promise((resolve) => closed.close(resolve));
  assert.match((await failureOf(parseSmtpUrl(`smtp://127.0.0.1:${port}`, from))).message, /ECONN|ESOCKET/);
});

const greeted = (say: Say): Say => {
  return (socket) => {
    socket.write('220 mail.test\r\n');
    socket.once('data', () => say(socket));
  };
};

const endless: Readonly<Record<string, Say>> = {
  'a greeting without an end': flood('', '220-hello\r\n'),
  'a greeting of one line without an end': flood('220 ', 'x'),
  'empty lines without an end': flood('', '\r\n'),
  'a greeting that drips': drip('', '220-hello\r\n'),
  nothing: () => {},
  'offers without an end': greeted(flood('', '250-OFFER\r\n')),
  'offers that drip': greeted(drip('', '250-OFFER\r\n')),
  'one offer that drips': greeted(drip('250-', 'x')),
  'empty lines that drip': greeted(drip('', '\r\n')),
};

for (const [what, say] of Object.entries(endless)) {
  test(`a server that says ${what} is given up`, async () => {
    const server = await oddServer({ atOnce: true });
    server.say = say;
    const before = process.memoryUsage().rss;
    try {
      const began = performance.now();
      const mailer = smtpMailer(parseSmtpUrl(`smtp://127.0.0.1:${server.port}`, from), 1500);
      await assert.rejects(mailer.send(mail), { code: 'unavailable', message: /did not accept a mail/ });
      assert.ok(performance.now() - began < 5000, `${performance.now() - began} ms`);
      const grown = (process.memoryUsage().rss - before) / (1 << 20);
      assert.ok(grown < 200, `${Math.round(grown)} MiB`);
      while (server.open() > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    } finally {
      server.close();
    }
  });
}

test('a server that is slow gets a few connections at once, and the mails one after the other', async () => {
  const server = await oddServer({ atOnce: true });
  let most = 0;
  server.say = (socket) => {
    most = Math.max(most, server.open());
    setTimeout(() => socket.end('421 later\r\n'), 5);
  };
  try {
    const mailer = smtpMailer(parseSmtpUrl(`smtp://127.0.0.1:${server.port}`, from));
    const said = await Promise.all(Array.from({ length: 5000 }, () => mailer.send(mail).catch(String)));
    const tooMany = said.filter((each) => /too many mails are waiting/.test(String(each)));
    assert.equal(tooMany.length, 5000 - 32 - 4096);
    assert.ok(said.every((each) => each !== undefined));
    // The server may not have seen the end of those before.
    assert.ok(most <= 64, `${most} connections`);
  } finally {
    server.close();
  }
});

test('addresses of mail servers', () => {
  const right: [string, Partial<MailSettings>][] = [
    ['smtp://mail.example.org', { host: 'mail.example.org', port: 587, tls: 'required' }],
    ['smtps://mail.example.org', { port: 465, tls: 'implicit' }],
    ['smtp://mail.example.org:25?tls=off', { port: 25, tls: 'off' }],
    ['smtp://localhost:2525', { port: 2525, tls: 'off' }],
    ['smtp://[::1]:2525', { host: '::1', tls: 'off' }],
    ['smtp://a%40b:p%3Aw@mail.example.org/', { user: 'a@b', password: 'p:w', tls: 'required' }],
  ];
  for (const [text, expected] of right) {
    assert.deepEqual({ ...parseSmtpUrl(text, from), ...expected }, parseSmtpUrl(text, from), text);
  }
  const wrong = [
    '',
    'mail.example.org',
    'http://mail.example.org',
    'smtp://',
    'smtp://mail.example.org/inbox',
    'smtp://mail.example.org?tls=maybe',
    'smtp://mail.example.org?starttls=true',
    'smtps://mail.example.org?tls=off',
    'smtp://user:%E0%A4%A@mail.example.org',
  ];
  for (const text of wrong) {
    assert.throws(
      () => parseSmtpUrl(text, from),
      (error) => error instanceof KmsError && error.code === 'invalid' && error.hint !== undefined,
      text,
    );
  }
  assert.throws(
    () => parseSmtpUrl('smtp://relay:hunter22@mail.example.org/x', from),
    (error) => error instanceof KmsError && !`${error.message}${error.hint}`.includes('hunter22'),
  );
});
