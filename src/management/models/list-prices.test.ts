import { expect, test } from 'vitest'
import { FREE_PRICE } from '../../domain/price.ts'
import type { AdministrationServices } from '../services.ts'
import { listPrices } from './list-prices.ts'

const DATE = '2026-11-23'

const at = (day: string) => {
  const model = { vendor: 'house', price: FREE_PRICE }
  const none = new Set<string>()
  return {
    store: { read: async () => ({ channels: [], entries: [] }) },
    settings: () => ({ channels: [{ models: ['m'] }], models: { get: () => model } }),
    liveConfig: {
      declared: { prices: none, models: none, listed: none },
      builtInPrice: () => ({ price: FREE_PRICE, date: DATE }),
    },
    nowMs: () => Date.parse(day),
  } as unknown as AdministrationServices
}

test('built-in prices are outdated when their data are more than 90 days old', async () => {
  expect(await listPrices(at('2027-02-21'), { outdated: true })).toEqual([])
  expect(await listPrices(at('2027-02-22'), { outdated: true })).toMatchObject([
    { model: 'm', source: 'built-in', data_date: DATE, differences: [], outdated: true },
  ])
})
