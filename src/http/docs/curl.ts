// A request to copy into a shell, with the examples of the description in it.
import type { Place } from './operation.ts';

/** `$KMS_URL` is the address of the appliance, `$KMS_API_KEY` an API key. */
export function curlOf({ method, path, operation }: Place): string {
  const { parameters = [], requestBody, security } = operation;
  const filled = parameters
    .filter((each) => each.in === 'path')
    .reduce((text, { name, example }) => text.replace(`{${name}}`, encodeURIComponent(String(example))), path);
  const query = parameters.filter((each) => each.in === 'query' && each.required);
  const search = new URLSearchParams(query.map(({ name, example }) => [name, String(example)])).toString();
  const [media] = Object.values(requestBody?.content ?? {});
  const parts = [
    method === 'GET' || (method === 'POST' && media) ? 'curl -s' : `curl -s -X ${method}`,
    ...(security.length > 0 ? ['-H "Authorization: Bearer $KMS_API_KEY"'] : []),
    ...(media ? ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(media.example))}`] : []),
    ...(operation.operationId === 'createBackup' ? ['-o backup.kms-backup'] : []),
    `"$KMS_URL${filled}${search === '' ? '' : `?${search}`}"`,
  ];
  return parts.join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
