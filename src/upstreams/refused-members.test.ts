import { expect, test } from 'vitest'
import { withoutRefusedMembers } from './refused-members.ts'

const ASKED = Buffer.from('{"model":"m", "stream":true,"stream_options":{"include_usage":true},"x":1.0}')

test.each([
  ['https://api.mistral.ai/v1', '{"model":"m", "stream":true,"x":1.0}'],
  ['https://notmistral.ai/v1', ASKED.toString()],
  ['https://api.openai.com/v1', ASKED.toString()],
])('a chat request for %s has no member that the provider refuses', (baseUrl, expected) => {
  expect(withoutRefusedMembers(ASKED, { protocol: 'chat' }, { base_url: baseUrl }).toString()).toBe(expected)
})

test('requests of other dialects are unchanged', () => {
  const channel = { base_url: 'https://api.mistral.ai/v1' }
  expect(withoutRefusedMembers(ASKED, { protocol: 'messages' }, channel)).toBe(ASKED)
})
