import { expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { decimalText, ONE, parseDecimal, ZERO } from './decimal.ts'
import { FREE_PRICE, chargeRateOf } from './price.ts'
import { priceWithServiceFactors, ratesToHold, serviceRate } from './service-rate.ts'

const TEN = parseDecimal('10') ?? ZERO
const tokens = { ...FREE_PRICE.tokens, input: TEN }
const anthropic = channelOf({ base_url: 'https://api.anthropic.com/v1' })

/** Input prices of the rates that a hold covers. */
function heldPrices(
  model: string,
  asked: { tiers: readonly string[]; region?: string },
  price = {},
): string[] {
  const rate = chargeRateOf({ ...FREE_PRICE, tokens, ...price }, ONE, 500_000)
  return ratesToHold(rate, anthropic, model, { region: undefined, ...asked }).map(
    ({ price: { tokens: held } }) => decimalText(held.input),
  )
}

test('a hold covers the dearest region of a model that is priced by region, unless the request names its region', () => {
  expect(heldPrices('claude-opus-4-6', { tiers: ['standard'] })).toEqual(['10', '11'])
  expect(heldPrices('claude-opus-4-6', { tiers: ['standard'], region: 'eu' })).toEqual(['10'])
  expect(heldPrices('claude-haiku-4-5', { tiers: ['standard'] })).toEqual(['10'])
})

test("a hold covers the regions declared for a channel in place of the vendor's own regions", () => {
  const regions = { us: parseDecimal('1.5') ?? ZERO }
  expect(heldPrices('claude-haiku-4-5', { tiers: ['standard'] }, { regions })).toEqual(['10', '15'])
})

test("a hold is computed at the price of the channel's default service tier only for models with a price for that tier", () => {
  const tiers = ['standard', 'fast']
  expect(heldPrices('claude-opus-4-6', { tiers, region: '' })).toEqual(['10', '60'])
  expect(heldPrices('claude-opus-4-8', { tiers, region: '' })).toEqual(['10', '20'])
  expect(heldPrices('claude-haiku-4-5', { tiers, region: '' })).toEqual(['10'])
})

test("a batch at Google leaves the price of cached tokens as it is, and a region's factor multiplies it all the same", () => {
  const regions = { europe: parseDecimal('2') ?? ZERO }
  const rate = chargeRateOf({ ...FREE_PRICE, tokens: { ...tokens, cache_read: ONE }, regions }, ONE, 500_000)
  const google = channelOf({ base_url: 'https://generativelanguage.googleapis.com/v1beta' })
  const service = { tier: 'batch', region: 'europe' }
  const { rate: served, terms } = serviceRate(rate, google, 'gemini-2.5-flash', service)
  const { input, cache_read: cached } = served.price.tokens
  expect([input, cached].map(decimalText)).toEqual(['10', '2'])
  expect(priceWithServiceFactors(rate.price, terms!)).toEqual(served.price)
})

test('the terms of a call that was charged earlier, with a factor alone, still multiply every price', () => {
  const price = { ...FREE_PRICE, tokens: { ...tokens, cache_read: ONE } }
  const { input, cache_read: cached } = priceWithServiceFactors(price, { factor: '0.5' }).tokens
  expect([input, cached].map(decimalText)).toEqual(['5', '0.5'])
})
