import { expect, test } from 'vitest'
import { endpointByPrice } from './endpoint-types.ts'
import { FREE_PRICE } from './price.ts'

test('the prices of a model determine its endpoints', () => {
  const some = { digits: 1n, scale: 3 }
  expect(endpointByPrice({ ...FREE_PRICE, image: { default: some } })).toBe('images')
  expect(endpointByPrice({ ...FREE_PRICE, characters: some })).toBe('speech')
  expect(endpointByPrice({ ...FREE_PRICE, second: some })).toBe('transcriptions')
  expect(endpointByPrice({ ...FREE_PRICE, request: some })).toBeUndefined()
})
