import { describe, expect, test } from 'vitest'
import { type Decimal, decimalText, parseDecimal } from './decimal.ts'
import { chargeOfCall } from './charge.ts'
import { FREE_PRICE, type Price, chargeRateOf } from './price.ts'
import { priceFromRatios, type Ratios, ratiosJson, ratiosOf, readRatios } from './ratios.ts'
import { completeTokenPrices } from './token-kinds.ts'
import { NO_USAGE } from '@sluice/wire/usage'

const d = (text: string): Decimal => {
  const read = parseDecimal(text)
  if (!read) throw new Error(`${text} is no decimal`)
  return read
}

const given = (ratios: Partial<Record<Exclude<keyof Ratios, 'images'>, string>>): Ratios =>
  Object.fromEntries(Object.entries(ratios).map(([name, text]) => [name, d(text)]))

const shown = (ratios: Omit<Ratios, 'images'>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(ratios).map(([name, value]: [string, Decimal]) => [name, decimalText(value)]),
  )

const charged = (
  ratios: Partial<Record<Exclude<keyof Ratios, 'images'>, string>>,
  usage: object,
  group = '1',
): number => {
  const price = priceFromRatios(given(ratios), undefined)
  if (!price) throw new Error('no price')
  return chargeOfCall(chargeRateOf(price, d(group), 500_000), { ...NO_USAGE, ...usage })
}

const SONNET: Price = {
  ...FREE_PRICE,
  tokens: completeTokenPrices({
    input: d('3'),
    output: d('15'),
    cache_read: d('0.3'),
    cache_write_5m: d('3.75'),
    cache_write_1h: d('6'),
  }),
  tiers: [],
  request: d('0'),
  tools: { web_search: d('0.01') },
}

describe('charges by ratios', () => {
  // At 500,000 units per dollar, a prompt token at ratio 1 costs one quota unit.
  test.each([
    [
      { model: '1', completion: '2', cache: '0.1', createCache: '1.25' },
      { input: 1000, output: 200, cacheRead: 100, cacheWrite5m: 30, cacheWrite1h: 20 },
      '1',
      1488,
    ],
    [{ model: '1', completion: '1', cache: '0.1' }, { input: 172, output: 383, cacheRead: 2432 }, '1', 798],
    [{ model: '1.5', completion: '5' }, { input: 1000, output: 500 }, '1', 5250],
    [{ price: '0.02' }, { input: 1000, output: 500 }, '1.5', 15_000],
    [{ model: '0.075', completion: '4' }, { input: 1 }, '1', 1],
    [{ model: '1', completion: '4' }, { input: 1000 }, '0', 0],
  ])(
    'a call at the ratios %o with the usage %o in a group with the ratio %s costs %i quota units',
    (ratios, usage, group, quota) => {
      expect(charged(ratios, usage, group)).toBe(quota)
    },
  )
})

describe('a price as ratios', () => {
  test('a price per token is converted to model, completion and cache ratios exactly', () => {
    expect(shown(ratiosOf(SONNET))).toEqual({
      model: '1.5',
      completion: '5',
      cache: '0.1',
      createCache: '1.25',
    })
  })

  test('a model that has only a price per call is converted to a fixed price in place of ratios', () => {
    expect(shown(ratiosOf({ ...SONNET, tokens: zero(), request: d('0.002') }))).toEqual({ price: '0.002' })
  })

  test('a free model is converted to a model ratio of 0', () => {
    expect(shown(ratiosOf({ ...SONNET, tokens: zero() }))).toEqual({ model: '0', completion: '1' })
  })

  test('ratios are unchanged after they are converted to prices and back', () => {
    const ratios = given({ model: '0.075', completion: '4.7', cache: '0.33', createCache: '1.1' })
    const price = priceFromRatios(ratios, undefined)
    expect(price && shown(ratiosOf(price))).toEqual(shown(ratios))
  })
})

describe('prices of other modalities', () => {
  const MEDIA: Price = {
    ...SONNET,
    tools: {},
    tokens: { ...SONNET.tokens, audio_input: d('6'), image_output: d('30') },
    characters: d('15'),
    second: d('0.0001'),
    image: { default: d('0.04'), '1x1/hd': d('0.08') },
  }

  test('audio and image token prices are converted to ratios relative to the prices of text', () => {
    const { images, ...ratios } = ratiosOf(MEDIA)
    expect(shown(ratios)).toMatchObject({
      audio: '2',
      audioCompletion: '2.5',
      image: '1',
      imageCompletion: '10',
      characters: '15',
      second: '0.0001',
    })
    expect(images).toEqual(MEDIA.image)
  })

  test('audio and image prices are unchanged after they are converted to ratios, stored and converted back', () => {
    const plain = (price: Price | undefined) =>
      JSON.stringify({ ...price, tokens: price && shown(price.tokens as never) }, (_, value: unknown) =>
        typeof value === 'bigint' ? String(value) : value,
      )
    const again = priceFromRatios(readRatios(ratiosJson(ratiosOf(MEDIA)) ?? null), undefined)
    expect(plain(again && { ...again, tiers: [] })).toBe(plain(MEDIA))
  })

  test('image ratios give a price to a model without a price per token', () => {
    const price = priceFromRatios({ images: { default: d('0.04') } }, undefined)
    expect(price).toMatchObject({ image: { default: d('0.04') }, tokens: { input: d('0') } })
  })

  test('audio and image prices stay unchanged if only the completion ratio of text is set', () => {
    const price = priceFromRatios(given({ completion: '2' }), MEDIA)
    expect(price?.tokens).toMatchObject({ output: d('6'), audio_input: d('6'), image_output: d('30') })
    expect(price).toMatchObject({ second: MEDIA.second, image: MEDIA.image })
  })
})

describe('ratios that are set beside a price', () => {
  test('a cache ratio set alone changes only the cache prices of a model', () => {
    expect(priceFromRatios(given({ cache: '0.5' }), SONNET)?.tokens).toEqual({
      ...SONNET.tokens,
      cache_read: d('1.5'),
      audio_cache_read: d('1.5'),
      image_cache_read: d('1.5'),
    })
  })

  test('a new model ratio scales all token prices of a model alike, so that their relations stay', () => {
    const price = priceFromRatios(given({ model: '3' }), SONNET)
    expect(price && shown(price.tokens as never)).toMatchObject({
      input: '6',
      output: '30',
      cache_read: '0.6',
      cache_write_5m: '7.5',
      cache_write_1h: '12',
      cache_write_30m: '7.5',
      cache_write_12h: '12',
      audio_input: '6',
      audio_output: '30',
      image_input: '6',
      image_output: '30',
      audio_cache_read: '0.6',
      image_cache_read: '0.6',
    })
  })

  test('a completion ratio alone gives no price to a model whose prompt price is unknown', () => {
    expect(priceFromRatios(given({ completion: '4' }), undefined)).toBeUndefined()
  })
})

function zero(): Price['tokens'] {
  return FREE_PRICE.tokens
}
