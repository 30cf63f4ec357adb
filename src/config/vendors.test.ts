import { expect, test } from 'vitest'
import { genAiProvider } from '../domain/gen-ai-provider.ts'
import { VENDORS } from './vendors.ts'

test('each vendor has its name in telemetry, by its host', () => {
  const names = new Map(
    VENDORS.map(({ id, baseUrl, protocol }) => {
      const channel = { provider: 'generic', base_url: baseUrl } as const
      return [genAiProvider(channel, 'm', protocol), id]
    }),
  )
  expect([...names.values()].toSorted()).toEqual([...new Set(VENDORS.map(({ id }) => id))].toSorted())
})
