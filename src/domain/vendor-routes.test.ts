import { describe, expect, test } from 'vitest'
import { parseVendorRoutes } from './vendor-routes.ts'

describe('vendor_routes', () => {
  test('vendor_routes is parsed from JSON to a map from vendors to groups, also for a vendor named __proto__', () => {
    expect(parseVendorRoutes('{"anthropic": "vip", "__proto__": "default"}')).toEqual(
      new Map([
        ['anthropic', 'vip'],
        ['__proto__', 'default'],
      ]),
    )
  })

  test.each(['', '  '])('vendor_routes without entries (%j) is read as an empty map', (text) => {
    expect(parseVendorRoutes(text)).toEqual(new Map())
  })

  test.each([
    '{',
    '[]',
    '"a"',
    'null',
    '1',
    '{"a": 1}',
    '{"a": {"b": "c"}}',
    '{"": "vip"}',
    '{"a": ""}',
    '{"a": " "}',
  ])('an invalid value of vendor_routes is refused: %s', (text) => {
    expect(parseVendorRoutes(text)).toBeUndefined()
  })
})
