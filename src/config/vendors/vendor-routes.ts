import { A_ROUTE_MAP, parseVendorRoutes } from '../../domain/vendor-routes.ts'
import { Refusal } from '../fields.ts'

/**
 * Reads a token's `vendor_routes`, a JSON map from vendor to group; `docs/api.md: Token management`. `accept`
 * returns a `Refusal` for an invalid group.
 */
export function vendorRoutes(
  accept: (group: string) => string | Refusal,
): (given: string) => string | Refusal {
  return (given) => {
    const routes = parseVendorRoutes(given)
    if (!routes) return new Refusal(A_ROUTE_MAP)
    for (const group of routes.values()) {
      const accepted = accept(group)
      if (typeof accepted !== 'string') return accepted
    }
    return given.trim() === '' ? '' : given
  }
}
