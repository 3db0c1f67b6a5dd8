// The yardstick of all ratios: a bare Hono route on the same runtime that parses a JSON body, if there is one, and
// returns fixed JSON. Its only argument is JSON: the answers by path.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const answers: Record<string, object> = JSON.parse(process.argv[2] ?? '{}');
const app = new Hono();
for (const [path, answer] of Object.entries(answers)) {
  app.post(path, async (c) => {
    await c.req.json();
    return c.json(answer);
  });
  app.get(`${path}/:text`, (c) => c.json(answer));
}
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`bare: listening on http://127.0.0.1:${port}`);
});
