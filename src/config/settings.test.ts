import { expect, test } from 'vitest'
import { modelCatalogue } from './settings.ts'
import { builtInPrices } from './built-in-prices.ts'

test('the model catalogue returns the same object for a model until a dated price change of the model applies', () => {
  let now = new Date('2026-05-01T12:00:00Z')
  const models = modelCatalogue(
    new Map(),
    new Map(),
    builtInPrices(() => now),
  )
  const [first, again] = [models.get('deepseek-v4-pro'), models.get('deepseek-v4-pro')]
  now = new Date('2026-10-01T12:00:00Z')
  const later = models.get('deepseek-v4-pro')
  expect(again).toBe(first)
  expect(later.price).not.toBe(first.price)
  expect(later.price?.tokens.input).toEqual({ digits: 66n, scale: 2 })
})
