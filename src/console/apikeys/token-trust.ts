// The trust in signed tokens as the form for a new proof asks for it: what each platform calls the parts of it, and the
// claims that its tokens have.
import type { InputOf } from '../../client/client.ts';
import { FieldProblems } from '../error-text.ts';
import type { FormValues } from '../parts/form.tsx';
import { objectIn } from '../parts/object-in.ts';

/** Platforms that sign tokens, with their names. */
export const platforms = [
  ['github', 'GitHub Actions'],
  ['gitlab', 'GitLab CI'],
  ['kubernetes', 'Kubernetes'],
  ['spiffe', 'SPIFFE'],
  ['other', 'Another issuer'],
] as const;
export type Platform = (typeof platforms)[number][0];

export function isPlatform(text: string): text is Platform {
  return platforms.some(([platform]) => platform === text);
}

type Trust = Omit<InputOf<'addProof'>, 'keyid' | 'kind' | 'name'>;

const githubIssuer = 'https://token.actions.githubusercontent.com';
export const gitlabIssuer = 'https://gitlab.com';

/** The trust that was filled in. Throws `FieldProblems`. */
export function trustIn(platform: Platform, values: FormValues): Trust {
  const audience = values.text('audience').split(/[\s,]+/);
  const longest = secondsIn(values);
  const shared = {
    audience,
    ...(values.isOn('once') && { once: true }),
    ...(longest !== undefined && { longest }),
  };
  return { ...shared, ...sourceIn(platform, values) };
}

function sourceIn(platform: Platform, values: FormValues): Omit<Trust, 'audience'> {
  switch (platform) {
    case 'github': {
      const repository = pathIn(values, 'repository', 'Enter it as owner/name.', /^[^\s/*]+\/[^\s/*]+$/);
      const branch = values.text('branch');
      const environment = values.text('environment');
      const ref = branch !== '' && { ref: `refs/heads/${branch}` };
      return { issuer: githubIssuer, claims: { repository, ...ref, ...(environment !== '' && { environment }) } };
    }
    case 'gitlab': {
      const project = pathIn(values, 'project', 'Enter it as group/project.', /^[^\s/*]+(\/[^\s/*]+)+$/);
      const branch = values.text('branch');
      const ref = branch !== '' && { ref: branch, ref_type: 'branch' };
      return { issuer: values.text('issuer'), claims: { project_path: project, ...ref } };
    }
    case 'kubernetes': {
      const subject = `system:serviceaccount:${values.text('namespace')}:${values.text('serviceAccount')}`;
      return { issuer: values.text('issuer'), subject, ...keysIn(values) };
    }
    case 'spiffe': {
      const issuer = `spiffe://${values.text('issuer').replace(/^spiffe:\/\//, '')}`;
      const id = values.text('subject');
      const subject = id.startsWith('spiffe://') ? id : `${issuer}/${id.replace(/^\//, '')}`;
      return { issuer, subject, ...keysIn(values) };
    }
    case 'other': {
      const subject = values.text('subject');
      const claims = objectIn(values, 'claims');
      return {
        issuer: values.text('issuer'),
        ...(subject !== '' && { subject }),
        ...(Object.keys(claims).length > 0 && { claims }),
        ...keysIn(values),
      };
    }
  }
}

function pathIn(values: FormValues, name: string, problem: string, form: RegExp): string {
  const path = values.text(name);
  if (!form.test(path)) throw new FieldProblems({ [name]: problem });
  return path;
}

/** How the issuer's public keys are had; by its own discovery if nothing was filled in. */
function keysIn(values: FormValues): Pick<Trust, 'jwks' | 'jwksUrl' | 'ca'> {
  const jwks = objectIn(values, 'jwks');
  const jwksUrl = values.text('jwksUrl');
  const ca = values.exactly('ca');
  return {
    ...(Object.keys(jwks).length > 0 && { jwks }),
    ...(jwksUrl !== '' && { jwksUrl }),
    ...(ca.trim() !== '' && { ca }),
  };
}

function secondsIn(values: FormValues): number | undefined {
  const typed = values.text('longest');
  if (typed === '') return undefined;
  const minutes = Number(typed);
  if (Number.isInteger(minutes) && minutes >= 1 && minutes <= 1440) return minutes * 60;
  throw new FieldProblems({ longest: 'Enter 1 to 1440 minutes.' });
}
