// The values that the examples of the API description are made of: one appliance's ring, key, asset, people and tokens,
// which fit each other. No appliance knows any of them.

export const sample = {
  ringId: 'ring_01kdyak3se5g95x5q7yjatpbew',
  keyId: 'key_01kdyak3se5g95x5q7yjatpbex',
  assetId: 'asset_01kdyak3se5g95x5q7yjatpbez',
  parentId: 'asset_01kdyak3se5g95x5q7yjatpbey',
  asymRingId: 'ring_01kdyak3se5g95x5q7yjatpbf1',
  asymKeyId: 'key_01kdyak3se5g95x5q7yjatpbf2',
  accountId: 'acct_01kdyak3se5g95x5q7yjatpbes',
  apikeyId: 'apik_01kdyak3se5g95x5q7yjatpbf4',
  userId: 'user_01kdyak3se5g95x5q7yjatpbf7',
  sessionId: 'sess_01kdyak3se5g95x5q7yjatpbf9',
  factorId: 'fact_01kdyak3se5g95x5q7yjatpbfb',
  activityId: 'act_01kdyak3se5g95x5q7yjatpbfd',
  time: '2026-01-02T03:04:05.678Z',
  epochTime: 1767323045678,
  publicKey: 'MCowBQYDK2VuAyEAPiAhcqPh5orZSBfzsRrbt//LQSzNjWtOvkVMsAOjJAw=',
  privateKey: 'MC4CAQAwBQYDK2VuBCIEIFfnu4gl97BJpUQG0TPMVreeUWs9rKuHF8HMpXMAkO1/',
  wrappedKey:
    'Wsk0eJDlAjSH/4MoO2ZGDK4VfknERm+1JAnHeXnuuS8DyolCeDIMFn1XA/4RKL9u5BW0ZmarhqOQK4NNpWY1lSMjchbVG6wAZIAgqvJrSwE=',
  iv: 'bIf43CCGu0rhDZqL',
  hash: 'AQABpGUvuj4LG90AS2Md2mhAB3x69NARO5DY5vOWJcutr_pbRaQHCFbpKDXPWlxeAq3ljLGACJ9IxcBaffme1FhU9B8WaC9lCLmN',
  header:
    'AQEBAAGkZS-6Pgsb3QBLYx3aaEAHfHr00BE7kNjm85Yly62v-ltFpAcIVukoNc9aXF4CreWMsYAIn0jFwFp9-Z7UWFT0HxZoL2UIuY1-dO2MbzUFLbFwzUYBm3ypjy4sEl6W5_SVqy3fAAAAAd69ycIurzgGU-J-vzhH7IvsqWe1JEvyfFjfIBG3enSU1XWxVvRAF3Y9Swvob8Plc5CDtUdqSGfG04QZu2OQ_pskJZegNt-_i1FjHu07I2xD',
  apikey: 'kms_6uhPzSKsLaCQCgGvM7HFBoYFBzgu8XW3eGHDSIzns7R4RvQYJ',
  accessToken: 'kmsat_TXr9WLlooOUgM2drHR5SXHGsDRt2rYpqTPBQslTOqhF',
  inviteToken: 'kmsin_6HQx4CPUoEN4C0gslk1uD7TKDVvhSZIsagpTQreCUFQ',
  resetToken: 'kmsrs_tEJcSlUML7wSB6NuFk3dGXs7ahpDTijkOWQDwXW9QKf',
  password: 'Correct-horse-7',
  totpSecret: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ',
  totpUri: 'otpauth://totp/kms.example.org:ada?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=kms.example.org',
  totpCode: '492039',
  recoveryCode: '91jp-rv3f-41bt-9k2s',
  challenge: 'RLlPYYNJqmjea835HYTtzokQJpA3hCtcEJlEfwgvVJc9AzWZunRqiQ',
  credentialId: 'NEExjOluW3_lpeU9rhbdoEhj3MrF_MzU4z1NDTPAYQI',
  userHandle: 'dXNlcl8wMWtkeWFrM3NlNWc5NXg1cTd5amF0cGJmNw',
  newClientData:
    'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIiwiY2hhbGxlbmdlIjoiUkxsUFlZTkpxbWplYTgzNUhZVHR6b2tRSnBBM2hDdGNFSmxFZndndlZKYzlBeldadW5ScWlRIiwib3JpZ2luIjoiaHR0cHM6Ly9rbXMuZXhhbXBsZS5vcmciLCJjcm9zc09yaWdpbiI6ZmFsc2V9',
  attestationObject:
    'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVikjIK7_boA8egb9JUM1JRuYO3db4SbwyVr_b7G0mQqmbJFAAAAAAAAAAAAAAAAAAAAAAAAAAAAIDRBMYzpblt_5aXlPa4W3aBIY9zKxfzM1OM9TQ0zwGECpQECAyYgASFYINQTByvCgepMUjZr2-UcEcRFWCAUSnHM_x0WWzkVOFACIlggupA76Jj-a4YgJ67CzhHZrsk3FoSGqUfjHHYIlAGLJNA',
  usedClientData:
    'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiUkxsUFlZTkpxbWplYTgzNUhZVHR6b2tRSnBBM2hDdGNFSmxFZndndlZKYzlBeldadW5ScWlRIiwib3JpZ2luIjoiaHR0cHM6Ly9rbXMuZXhhbXBsZS5vcmciLCJjcm9zc09yaWdpbiI6ZmFsc2V9',
  authenticatorData: 'jIK7_boA8egb9JUM1JRuYO3db4SbwyVr_b7G0mQqmbIFAAAAAQ',
  passkeySignature: 'MEYCIQCPBBOeOgJnmkApxUSMReMOyzfBYNu5GTqiy2cbCzuMsgIhAKR8NQjNwpemu5-gl_B5yzFw1Nq_CUbPIRqNU1BJXr66',
  cursor: 'AQABqItE1xOgeWsRybLjIkVKcCqSs97DUS0ZJ8YOuPhFpiXaxGQm5MvApadLYQ34-QA4',
} as const;
