import { expect, test } from 'vitest'
import { unitPrices } from './unit-prices.ts'

test.each([
  [{ input: '3', output: '15', request: '0' }, []],
  [{ input: '0', output: '0', request: '0.04' }, [{ unit: 'request', usd: 0.04, isLowest: false }]],
  [{ second: '0.0001' }, [{ unit: 'second', usd: 0.0001, isLowest: false }]],
  [{ characters: 15 }, [{ unit: 'characters', usd: 15, isLowest: false }]],
  [{ search_unit: 0.002 }, [{ unit: 'search_unit', usd: 0.002, isLowest: false }]],
  [{ image: { default: '0.04' } }, [{ unit: 'image', usd: 0.04, isLowest: false }]],
  [{ image: { '1024x1024/hd': '0.08', default: '0.04' } }, [{ unit: 'image', usd: 0.04, isLowest: true }]],
])('the prices %j have these that are not for tokens', (prices, expected) => {
  expect(unitPrices(prices)).toEqual(expected)
})
