import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '@sluice/wire/usage'
import type { RestrictedField } from '@sluice/wire/upstream-settings'
import { channelOf } from '../../test/samples/channel.ts'
import { chargedTier, possibleTiersAndRegion, withCacheLifetimeOfSentRequest } from './service-tier-rates.ts'

const allow = new Set<RestrictedField>(['service_tier'])
const openai = channelOf({ base_url: 'https://api.openai.com/v1', allow })
const closed = channelOf({ base_url: 'https://api.openai.com/v1' })
const other = channelOf({ allow })
const auto = channelOf({ base_url: 'https://api.openai.com/v1', service_tier: 'auto' })
const overridden = (how: 'set' | 'default', text: string, member = 'service_tier') =>
  channelOf({
    allow,
    override: { set: new Map(), default: new Map(), remove: [], [how]: new Map([[member, text]]) },
  })

describe('the tier of an answer that states none', () => {
  test.each([
    ['nothing was sent to another host', other, undefined, 'standard', false],
    ['auto was sent to another host', other, 'auto', 'standard', false],
    ['flex was sent', other, 'flex', 'flex', false],
    ['the channel removes the field', closed, 'flex', 'standard', false],
    ['OpenAI chooses, as nothing was sent', openai, undefined, 'standard', true],
    ['OpenAI chooses by auto', openai, 'auto', 'standard', true],
    ['flex was sent to OpenAI', openai, 'flex', 'flex', false],
    ["the channel's own tier was sent", channelOf({ service_tier: 'priority' }), 'flex', 'fast', false],
    ['the channel leaves it to OpenAI', auto, 'flex', 'standard', true],
    ['an override sets it', overridden('set', '"flex"'), 'priority', 'flex', false],
    [
      "an override sets Converse's",
      overridden('set', '{"type":"flex"}', 'serviceTier'),
      undefined,
      'flex',
      false,
    ],
    ['an override has a default', overridden('default', '"flex"'), undefined, 'flex', false],
    ['the client names another than the default', overridden('default', '"flex"'), 'fast', 'fast', false],
  ])(
    'an answer that states no service tier is charged by the requested tier, as a guess if the provider chose: %s',
    (_, channel, requested, tier, isGuessed) => {
      expect(chargedTier(channel, { serviceTier: requested }, false, undefined)).toEqual({ tier, isGuessed })
    },
  )

  test.each(['embeddings', 'images', 'speech', 'transcriptions', 'moderations'] as const)(
    'the hold of a call at an endpoint without service tiers is computed for the standard tier only: %s',
    (endpoint) => {
      expect(possibleTiersAndRegion({ channel: openai }, endpoint, {}, false).tiers).toEqual(['standard'])
    },
  )

  test('a charge by the service tier that the answer states is not marked as guessed', () => {
    expect(chargedTier(openai, { serviceTier: 'auto' }, false, 'fast')).toEqual({
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
    ["standard and the channel's own", channelOf({ service_tier: 'fast' }), 'flex', ['standard', 'fast']],
    ['standard and fast where the channel leaves it to OpenAI', auto, 'flex', ['standard', 'fast']],
  ])('a hold covers the service tiers that may be served: %s', (_, channel, serviceTier, tiers) => {
    const request = serviceTier === undefined ? {} : { serviceTier }
    expect(possibleTiersAndRegion({ channel }, 'chat', request, false).tiers).toEqual(tiers)
  })
})

describe('the region that a hold covers', () => {
  test.each([
    ['none, if the request names none', channelOf({}), {}, undefined],
    ['none, if the channel removes it', channelOf({}), { region: 'us' }, undefined],
    ['that of the request', channelOf({ allow: new Set(['inference_geo']) }), { region: 'us' }, 'us'],
    ['that of an override', overridden('set', '"eu"', 'inference_geo'), { region: 'us' }, 'eu'],
  ])('a hold covers the region that may be served: %s', (_, channel, request, region) => {
    expect(possibleTiersAndRegion({ channel }, 'chat', request, false).region).toBe(region)
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
  ] as const)('cache writes of an unknown lifetime count as %s', (_, channel, sent, kind) => {
    expect(withCacheLifetimeOfSentRequest(written, { channel, request: sent })).toEqual({
      ...NO_USAGE,
      [kind]: 7,
    })
  })
})
