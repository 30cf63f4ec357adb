import { expect, test } from 'vitest'
import { parseBedrockKey } from './provider-keys.ts'

const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'

test('a Bedrock key is parsed as access key id and secret, with or without a session token', () => {
  const aws = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: SECRET }
  expect(parseBedrockKey(`AKIAIOSFODNN7EXAMPLE:${SECRET}`)).toEqual({ aws })
  expect(parseBedrockKey(`AKIAIOSFODNN7EXAMPLE:${SECRET}:FwoGZ/+=`)).toEqual({
    aws: { ...aws, sessionToken: 'FwoGZ/+=' },
  })
})

test('a Bedrock key without a colon is read as an API key, and sent as a bearer token', () => {
  expect(parseBedrockKey('ABSKQmVkcm9ja0FQSUtleS0xMjM0')).toEqual({ bearer: 'ABSKQmVkcm9ja0FQSUtleS0xMjM0' })
})

test.each([
  '',
  'short',
  `:${SECRET}`,
  'AKIAIOSFODNN7EXAMPLE:',
  'AKIAIOSFODNN7EXAMPLE:short',
  `lower-case:${SECRET}`,
  `AKIAIOSFODNN7EXAMPLE:${SECRET}:`,
  `AKIAIOSFODNN7EXAMPLE:${SECRET}:token:more`,
])('an invalid Bedrock key is refused: %j', (text) => {
  expect(parseBedrockKey(text)).toBeUndefined()
})
