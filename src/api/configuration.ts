// Configuration files, from which `kms apply` makes objects: the fields of each kind, put together from the bodies of
// the endpoints that make and change them, and the JSON Schema of the files.
import type { z } from 'zod';
import { type EndpointId, type EndpointOf, endpoints } from './endpoints.ts';
import { only } from './values.ts';

/** The body that the endpoint validates requests with. */
function bodyOf<Id extends EndpointId>(id: Id): EndpointOf<Id> extends { readonly body: infer B } ? B : never {
  const endpoint = endpoints.find((each) => each.id === id);
  // Cast: the endpoint with this id has the type that its id names.
  return (endpoint as unknown as { body: never }).body;
}

const { uid, notes, props } = bodyOf('createAccount').shape;

interface KindSchema {
  readonly about: string;
  readonly name: z.ZodType;
  readonly fields: z.ZodObject;
}

export const configurationKinds = {
  account: {
    about: 'an account, which owns API keys; its name is the uid',
    name: uid,
    fields: only({ notes, props }),
  },
} as const satisfies Readonly<Record<string, KindSchema>>;

export type KindName = keyof typeof configurationKinds;
