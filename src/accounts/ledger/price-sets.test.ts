import { expect, test } from 'vitest'
import { priceVersionOf } from './price-sets.ts'

const settings = { priceVersion: '0123456789ab' }
const plans = (...moments: (string | undefined)[]) =>
  moments.map((priceMoment, index) => ({ model: { name: `m${index}`, priceMoment } }))

test("the price version of a call is the one of the configuration if none of the call's prices depends on the time", () => {
  expect(priceVersionOf(settings, plans(undefined, undefined))).toBe('0123456789ab')
})

test("the price version of a call differs for each set of time-dependent prices of its model and of the model's fallback", () => {
  const versions = [plans('0'), plans('1'), plans(undefined, '0'), plans(undefined, '1')].map((each) =>
    priceVersionOf(settings, each),
  )
  expect(new Set(versions).size).toBe(4)
  for (const version of versions) expect(version).toMatch(/^[0-9a-f]{12}$/)
  expect(priceVersionOf(settings, plans('0'))).toBe(versions[0])
})
