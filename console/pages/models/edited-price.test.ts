import { expect, test } from 'vitest'
import type { ManagedModel } from '../../api/models.ts'
import { editedPrice, exampleCost, isPrice } from './edited-price.ts'

const MODEL: ManagedModel = {
  model: 'm',
  vendor: null,
  price: {
    input: '3',
    output: '15',
    cache_read: '0.3',
    cache_write_5m: '3.75',
    cache_write_1h: '7',
    audio_input: '3',
    audio_output: '40',
    request: '0',
  },
  tiers: [{ above: 1000, input: '6', output: '20' }],
  source: 'built-in',
  channels: [],
  groups: [],
  calls_30d: 0,
  version: 'v',
}

test('prices that were derived from others are derived again, and all others and the tiers stay', () => {
  expect(editedPrice(MODEL, { input: ' 4 ', output: '15', cached: '0.5' })).toEqual({
    input: '4',
    output: '15',
    cache_read: '0.5',
    cache_write_1h: '7',
    audio_output: '40',
    request: '0',
    tiers: MODEL.tiers,
  })
  expect(editedPrice({ ...MODEL, price: null, tiers: [] }, { input: '1', output: '2', cached: '' })).toEqual({
    input: '1',
    output: '2',
  })
})

test('an example shows the cost of a call at the typed prices', () => {
  expect(exampleCost({ input: '3', output: '15', cached: '' })).toBe(0.0105)
  expect(exampleCost({ input: '3', output: 'a lot', cached: '' })).toBeUndefined()
  expect(['1', '0.25', ' 2 '].every(isPrice)).toBe(true)
  expect(['', '-1', '1e3', '.5', '1,5'].some(isPrice)).toBe(false)
})
