import { expect, test } from 'vitest'
import { CHANNEL_TYPES } from '../../../src/management/channels/channel-types.ts'
import { OPENAI_COMPATIBLE_TYPE, PROVIDERS } from './providers.ts'

test('every provider that the channel form offers is a channel type with a default address, or a cloud provider', () => {
  const known = new Map(
    CHANNEL_TYPES.map(({ type, defaultAddress, provider }) => [type, defaultAddress || provider]),
  )
  expect(PROVIDERS.filter(({ type }) => !known.get(type)).map(({ name }) => name)).toEqual([])
  expect(known.has(OPENAI_COMPATIBLE_TYPE)).toBe(true)
})
