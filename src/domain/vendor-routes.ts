/** Describes a valid value of `vendor_routes`, for error messages. */
export const ROUTE_MAP_EXPECTATION =
  'a JSON map from vendors to groups such as {"anthropic": "vip"}, nothing in it empty'

const NO_ROUTES: ReadonlyMap<string, string> = new Map()

/**
 * Parses a token's `vendor_routes`, a JSON object from vendor names to group names. An empty text is an empty
 * map. Undefined if the text is invalid. `docs/api.md: Token management`.
 */
export function parseVendorRoutes(text: string): ReadonlyMap<string, string> | undefined {
  if (text.trim() === '') return NO_ROUTES
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const routes = new Map<string, string>()
  for (const [vendor, group] of Object.entries(value)) {
    if (vendor.trim() === '' || typeof group !== 'string' || group.trim() === '') return undefined
    routes.set(vendor, group)
  }
  return routes
}
