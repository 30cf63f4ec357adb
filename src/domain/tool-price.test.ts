import { TOOL_KINDS } from '@sluice/wire/tool-use'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LISTED_TOOLS, listedToolPrice, toolVendor } from './tool-price.ts'

test('docs/configuration.md has the current list of provider tools with a price', () => {
  const page = readFileSync('docs/configuration.md', 'utf8')
  const rows = page
    .slice(page.indexOf('### Tools'))
    .matchAll(/^\| ([\w-]+) \| `(\w+)`(.*) \| (\w+) \| ([\d.]+) \| `(.+)` \| (\S+) \|$/gm)
  expect(
    [...rows].map(([, vendor, kind, models, unit, price, source, date]) => [
      vendor,
      kind,
      models !== '',
      unit,
      price,
      source,
      date,
    ]),
  ).toEqual(
    LISTED_TOOLS.map(({ vendor, kind, models, unit, price, source, date }) => [
      vendor,
      kind,
      models !== undefined,
      unit,
      price,
      source,
      date,
    ]),
  )
})

test('every kind of provider tool has an entry in the tool price list at every vendor and in every dialect', () => {
  for (const kind of TOOL_KINDS)
    for (const vendor of ['openai', 'anthropic', 'google', 'x-ai', 'openrouter'] as const)
      for (const dialect of ['chat', 'messages', 'responses', 'gemini'] as const)
        expect(listedToolPrice(kind, { vendor, dialect, model: 'm' }).kind).toBe(kind)
})

test.each([
  ['https://api.openai.com/v1', 'generic', 'messages', 'openai'],
  ['https://eu.api.x.ai/v1', 'generic', 'responses', 'x-ai'],
  ['https://openrouter.ai/api/v1', 'generic', 'chat', 'openrouter'],
  ['https://example.com/v1', 'generic', 'messages', 'anthropic'],
  ['https://openai.com.example.com/v1', 'generic', 'gemini', 'google'],
  ['https://example.com', 'azure', 'messages', 'openai'],
] as const)(
  'the vendor whose tool prices apply at the address %s of a channel (%o) for the dialect %s is %s',
  (base_url, provider, dialect, vendor) => {
    expect(toolVendor({ base_url, provider }, dialect)).toBe(vendor)
  },
)
