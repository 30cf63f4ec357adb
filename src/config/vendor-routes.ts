import { Refusal } from './fields.ts'

/**
 * Reads a token's `vendor_routes`, a JSON map from vendor to group; `docs/api.md: Token management`. `accept` says what
 * is wrong with a group.
 */
export function vendorRoutes(
  accept: (group: string) => string | Refusal,
): (given: string) => string | Refusal {
  return (given) => {
    if (given.trim() === '') return ''
    const routes = parsed(given)
    if (typeof routes !== 'object' || routes === null || Array.isArray(routes)) return NO_ROUTES
    for (const [vendor, group] of Object.entries(routes)) {
      if (vendor.trim() === '' || typeof group !== 'string' || group.trim() === '') return NO_ROUTES
      const accepted = accept(group)
      if (typeof accepted !== 'string') return accepted
    }
    return given
  }
}

const NO_ROUTES = new Refusal(
  'a JSON map from vendors to groups such as {"anthropic": "vip"}, nothing in it empty',
)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
