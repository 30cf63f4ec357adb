import { NO_USAGE } from '@sluice/wire/usage'
import { expect, test } from 'vitest'
import { type Decimal, parseDecimal } from './decimal.ts'
import { FREE_PRICE, chargeRateOf } from './price.ts'
import { chargeAtRate } from './charge-at-rate.ts'

const decimal = (text: string): Decimal => parseDecimal(text)!
const form = { size: undefined, quality: undefined }

test("a charge recomputed at other prices takes a tool's price from them, or keeps the tool's original price if they have none", () => {
  const searches = { kind: 'web_search', count: 2, price: decimal('0.01') } as const
  const counts = { usage: NO_USAGE, form, tools: [searches] }
  const dearer = chargeRateOf(
    { ...FREE_PRICE, tools: { web_search: decimal('0.05') } },
    decimal('1'),
    500_000,
  )
  expect(chargeAtRate(dearer, counts)).toBe(50_000)
  // A request costs 5,000 units.
  const other = chargeRateOf({ ...FREE_PRICE, tools: {}, request: decimal('0.01') }, decimal('1'), 500_000)
  expect(chargeAtRate(other, counts)).toBe(5_000 + 10_000)
})
