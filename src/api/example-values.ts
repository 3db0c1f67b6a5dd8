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
  cursor: 'AQABqItE1xOgeWsRybLjIkVKcCqSs97DUS0ZJ8YOuPhFpiXaxGQm5MvApadLYQ34-QA4',
} as const;
