import { expect, test } from 'vitest'
import { CHANNEL_TYPES } from '../../../src/management/channels/channel-types.ts'
import { OPENAI_COMPATIBLE_TYPE, PROVIDERS } from './providers.ts'

test('every provider is a channel type of the gateway that has its own address, or is a cloud', () => {
  const known = new Map(
    CHANNEL_TYPES.map(({ type, defaultAddress, provider }) => [type, defaultAddress || provider]),
  )
  expect(PROVIDERS.filter(({ type }) => !known.get(type)).map(({ name }) => name)).toEqual([])
  expect(known.has(OPENAI_COMPATIBLE_TYPE)).toBe(true)
})
