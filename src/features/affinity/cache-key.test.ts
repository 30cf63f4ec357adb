import { expect, test } from 'vitest'
import type { Channel } from '../../domain/records/channel.ts'
import type { AttemptRequest } from '../../call/request-stages.ts'
import type { CallAffinity } from './affinity.ts'
import { withCacheKey } from './cache-key.ts'

const KEY = '0123456789abcdef0123456789abcdef'

function sent(channel: object, protocol = 'chat'): string {
  const request = { body: Buffer.from('{"model":"m"}'), protocol } as unknown as AttemptRequest
  const own = { allow: new Set(), provider: undefined, ...channel } as unknown as Channel
  const body = withCacheKey(request, own, { cacheKey: KEY } as CallAffinity)
  return Buffer.isBuffer(body) ? body.toString() : ''
}

test.each([
  ['api.openai.com', { base_url: 'https://api.openai.com/v1' }],
  ['Azure OpenAI', { base_url: 'https://name.example.com', provider: 'azure' }],
  ['openrouter.ai', { base_url: 'https://openrouter.ai/api/v1' }],
  ['a channel that allows it', { base_url: 'https://example.com/v1', allow: new Set(['prompt_cache_key']) }],
])(
  'a channel that supports it is sent a prompt_cache_key for the session, in chat and responses: %s',
  (_, channel) => {
    for (const protocol of ['chat', 'responses'])
      expect(sent(channel, protocol)).toBe(`{"model":"m","prompt_cache_key":"${KEY}"}`)
  },
)

test.each([
  ['another host', { base_url: 'https://example.com/v1' }, 'chat'],
  [
    'a host that has the name of one in its own',
    { base_url: 'https://api.openai.com.example.com/v1' },
    'chat',
  ],
  ['messages', { base_url: 'https://openrouter.ai/api/v1' }, 'messages'],
  ['gemini', { base_url: 'https://openrouter.ai/api/v1' }, 'gemini'],
  ['converse', { base_url: 'https://openrouter.ai/api/v1' }, 'converse'],
])('a channel that may not support it is sent no prompt_cache_key: %s', (_, channel, protocol) => {
  expect(sent(channel, protocol)).toBe('{"model":"m"}')
})
