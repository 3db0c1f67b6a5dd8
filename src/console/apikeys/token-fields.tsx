// TokenFields ask whose signed tokens prove an API key. Each platform has fields of its own.
import type { Child } from 'hono/jsx/dom';
import { baseUrl } from '../navigation.ts';
import { Check, Field, JsonField, TextArea } from '../parts/fields.tsx';
import { gitlabIssuer, type Platform } from './token-trust.ts';

export function TokenFields({ platform }: { readonly platform: Platform }) {
  return (
    <>
      {fieldsOf[platform]()}
      <Field
        name="audience"
        label="Audience"
        hint="Each program asks its platform for a token for this audience. Several are separated by blanks."
        value={baseUrl}
        isRequired
      />
      <details>
        <summary>More</summary>
        <Field
          name="longest"
          label="Longest lifetime of a token, in minutes"
          type="number"
          hint="A token that is valid for longer is refused. Leave it empty for a day."
        />
        <Check
          name="once"
          label="Accept each token only once"
          hint="The token then needs the claim jti. GitHub, GitLab and Kubernetes put it in."
        />
      </details>
    </>
  );
}

const fieldsOf: Readonly<Record<Platform, () => Child>> = {
  github: () => (
    <>
      <Field name="repository" label="Repository" hint="Such as acme/payroll." isRequired />
      <Field name="branch" label="Branch" hint="Only jobs on this branch. Leave it empty for any." />
      <Field name="environment" label="Environment" hint="Only jobs in this environment. Leave it empty for any." />
    </>
  ),
  gitlab: () => (
    <>
      <Field name="issuer" label="Address of GitLab" value={gitlabIssuer} isRequired />
      <Field name="project" label="Project" hint="Its path, such as acme/payroll." isRequired />
      <Field name="branch" label="Branch" hint="Only jobs on this branch. Leave it empty for any." />
    </>
  ),
  kubernetes: () => (
    <>
      <Field
        name="issuer"
        label="Issuer of the cluster"
        hint={
          <>
            As <code>kubectl get --raw /.well-known/openid-configuration</code> shows it.
          </>
        }
        isRequired
      />
      <Field name="namespace" label="Namespace" isRequired />
      <Field name="serviceAccount" label="Service account" isRequired />
      <JsonField
        name="jwks"
        label="Public keys"
        hint={
          <>
            What <code>kubectl get --raw /openid/v1/jwks</code> prints. Leave it empty if the issuer publishes them at
            an address that this service reaches.
          </>
        }
      />
      <Authorities />
    </>
  ),
  spiffe: () => (
    <>
      <Field name="issuer" label="Trust domain" hint="Such as example.org." isRequired />
      <Field
        name="subject"
        label="SPIFFE ID"
        hint="Such as /ns/prod/sa/payroll. * stands for anything but a slash."
        isRequired
      />
      <JsonField name="jwks" label="Bundle of the trust domain" hint="As JSON. Or fill in its address below." />
      <KeysAddress label="Address of the bundle" />
      <Authorities />
    </>
  ),
  other: () => (
    <>
      <Field
        name="issuer"
        label="Issuer"
        hint="The claim iss, exactly as it is in the tokens, such as https://ci.example.org."
        isRequired
      />
      <Field
        name="subject"
        label="Subject"
        hint="The claim sub. * stands for anything but a slash, ** for anything at all."
      />
      <JsonField
        name="claims"
        label="Other claims"
        hint={
          <>
            A JSON object such as <code>{'{"repository_id": "123"}'}</code>, with the value that each must have, or a
            list of values.
          </>
        }
      />
      <JsonField
        name="jwks"
        label="Public keys"
        hint="A JSON Web Key Set. Leave it empty for those that the issuer publishes."
      />
      <KeysAddress label="Address of the public keys" />
      <Authorities />
    </>
  ),
};

function KeysAddress({ label }: { readonly label: string }) {
  return <Field name="jwksUrl" label={label} hint="Beginning with https://." />;
}

function Authorities() {
  return (
    <TextArea
      name="ca"
      label="Certificate authorities of the issuer"
      hint="As PEM, if its address has no certificate of a public authority."
      isCode
    />
  );
}
