import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '@sluice/wire/usage'
import type { GatedField } from '@sluice/wire/upstream-settings'
import { channelOf } from '../../test/channel.ts'
import { chargedTier, possibleTiers, withSentLifetime } from './served-price.ts'

const allow = new Set<GatedField>(['service_tier'])
const openai = channelOf({ base_url: 'https://api.openai.com/v1', allow })
const closed = channelOf({ base_url: 'https://api.openai.com/v1' })
const other = channelOf({ allow })

describe('the tier of an answer that states none', () => {
  test.each([
    ['nothing was sent to another host', other, undefined, 'standard', false],
    ['auto was sent to another host', other, 'auto', 'standard', false],
    ['flex was sent', other, 'flex', 'flex', false],
    ['the channel removes the field', closed, 'flex', 'standard', false],
    ['OpenAI chooses, as nothing was sent', openai, undefined, 'standard', true],
    ['OpenAI chooses by auto', openai, 'auto', 'standard', true],
    ['flex was sent to OpenAI', openai, 'flex', 'flex', false],
  ])(
    'is that of the request, and a guess where the provider chose: %s',
    (_, channel, requested, tier, isGuessed) => {
      expect(chargedTier(channel, 'chat', requested, false, undefined)).toEqual({ tier, isGuessed })
    },
  )

  test.each(['embeddings', 'images', 'speech', 'transcriptions', 'moderations'] as const)(
    'is the standard one, and no guess, where a provider has no tiers: %s',
    (endpoint) => {
      expect(chargedTier(openai, endpoint, undefined, false, undefined)).toEqual({
        tier: 'standard',
        isGuessed: false,
      })
      expect(possibleTiers({ channel: openai }, endpoint, {}, false)).toEqual(['standard'])
    },
  )

  test('a stated tier is no guess', () => {
    expect(chargedTier(openai, 'responses', 'auto', false, 'fast')).toEqual({
      tier: 'fast',
      isGuessed: false,
    })
  })
})

describe('the tiers that a hold covers', () => {
  test.each([
    ['the standard one where OpenAI is told so', closed, 'flex', ['standard']],
    ['standard and fast where OpenAI chooses', openai, undefined, ['standard', 'fast']],
    ['standard and the one that is sent', openai, 'ultrafast', ['standard', 'ultrafast']],
    ['the standard one at other hosts', other, 'auto', ['standard']],
  ])('are %s', (_, channel, serviceTier, tiers) => {
    expect(
      possibleTiers({ channel }, 'chat', serviceTier === undefined ? {} : { serviceTier }, false),
    ).toEqual(tiers)
  })
})

describe('tokens written to a cache for an unknown lifetime', () => {
  const written = { ...NO_USAGE, cacheWrite5m: 7, lifetimeIsUnknown: true } as const
  const request = (mark?: object) => ({
    body: Buffer.from(JSON.stringify({ messages: [{ content: [{ ...mark }] }] })),
  })

  test.each([
    ['5m elsewhere', other, request(), 'cacheWrite5m'],
    ["30m at OpenAI's host", openai, request(), 'cacheWrite30m'],
    ['30m at Azure', channelOf({ provider: 'azure' }), request(), 'cacheWrite30m'],
    [
      'the lifetime that the request names',
      openai,
      request({ cache_control: { ttl: '1h' } }),
      'cacheWrite1h',
    ],
  ] as const)('count as %s', (_, channel, sent, kind) => {
    expect(withSentLifetime(written, { channel, request: sent })).toEqual({ ...NO_USAGE, [kind]: 7 })
  })
})
