// The values that the examples of the API description are made of: one appliance's ring, key, asset, people and tokens, which fit
// each other. No appliance knows any of them.

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
  activityId: 'act_01kdyak3se5g95x5q7yjatpbfd',
  time: '2026-01-02T03:04:05.678Z',
  epochTime: 1767323045678,
  publicKey: 'MCowBQYDK2VuAyEAPiAhcqPh5orZSBfzsRrbt//LQSzNjWtOvkVMsAOjJAw=',
  privateKey: 'MC4CAQAwBQYDK2VuBCIEIFfnu4gl97BJpUQG0TPMVreeUWs9rKuHF8HMpXMAkO1/',
  wrappedKey:
    'Wsk0eJDlAjSH/4MoO2ZGDK4VfknERm+1JAnHeXnuuS8DyolCeDIMFn1XA/4RKL9u5BW0ZmarhqOQK4NNpWY1lSMjchbVG6wAZIAgqvJrSwE=',
  iv: 'bIf43CCGu0rhDZqL',
  hash: 'AQABaBICdFRg6ike8dGqGT93zcrIcNmGt7FmUOWTTJxou55Ah255AtrI8Jp9a61u8ifXQkafTz7YkeNBysWXTZLuU0sClVBcpWp7',
  header:
    'AQEBAAFoEgJ0VGDqKR7x0aoZP3fNyshw2Ya3sWZQ5ZNMnGi7nkCHbnkC2sjwmn1rrW7yJ9dCRp9PPtiR40HKxZdNku5TSwKVUFylanvOYw-7-RR6xp1ke9C9V9EMAZt8qY8uLBJeluf0last3wAAAAGJO4aNANTKc59Xc_vgbprgLaljKtmTqcbVMPbKGgQ44O7mHcUptcTq71JweKiVIcWZ6r3n4gWmv0eDDq1TqkMAr9-jQZ8sLQkvFH1DYCXd5Q',
  apikey: 'kms_6uhPzSKsLaCQCgGvM7HFBoYFBzgu8XW3eGHDSIzns7R4RvQYJ',
  accessToken: 'kmsat_TXr9WLlooOUgM2drHR5SXHGsDRt2rYpqTPBQslTOqhF',
  inviteToken: 'kmsin_6HQx4CPUoEN4C0gslk1uD7TKDVvhSZIsagpTQreCUFQ',
  resetToken: 'kmsrs_tEJcSlUML7wSB6NuFk3dGXs7ahpDTijkOWQDwXW9QKf',
  password: 'Correct-horse-7',
  cursor: 'AQABqItE1xOgeWsRybLjIkVKcCqSs97DUS0ZJ8YOuPhFpiXaxGQm5MvApadLYQ34-QA4',
} as const;
