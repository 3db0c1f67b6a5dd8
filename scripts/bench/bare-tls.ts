// The yardstick of KMIP: a bare TLS server that answers each message with the same bytes. Arguments: certificate, key,
// and the answer in Base64.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';

const [cert = '', key = '', answer = ''] = process.argv.slice(2);
const bytes = Buffer.from(answer, 'base64');
const options = { cert: readFileSync(cert), key: readFileSync(key), requestCert: true, rejectUnauthorized: false };
const server = createServer(options, (socket) => {
  socket.setNoDelay(true);
  socket.on('data', () => socket.write(bytes)).on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(`bare: listening on tls://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
});
