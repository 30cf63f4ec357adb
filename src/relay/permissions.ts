import type { Group, Settings } from '../domain/settings.ts'
import type { Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'
import { parseVendorRoutes } from '../domain/vendor-routes.ts'
import { GatewayError } from '../errors.ts'
import { truncatedName } from './truncated-name.ts'

/** Whose call it is, as far as the choice of a channel depends on it. */
export interface KeyAndOwner {
  readonly token: Token
  readonly user: User
}

/** The names that a token's `model_limits` lets through; undefined where it limits nothing. */
export function allowedNames(token: Token): ReadonlySet<string> | undefined {
  if (!token.modelLimitsEnabled) return undefined
  const names = new Set<string>()
  for (const entry of token.modelLimits.split(',')) {
    const name = entry.trim()
    if (name !== '') names.add(name)
  }
  return names
}

/** The groups that a token names for vendors of its choice; `group_not_allowed` if that cannot be read. */
export function routesOf(token: Token): ReadonlyMap<string, string> {
  const routes = parseVendorRoutes(token.vendorRoutes)
  if (!routes) throw new GatewayError('group_not_allowed', 'the vendor_routes of this API key cannot be read')
  return routes
}

/**
 * The name of the group that a vendor's models are called in: routed first, then the token's group, then the
 * user's own.
 */
export function groupName(
  { token, user }: KeyAndOwner,
  routes: ReadonlyMap<string, string>,
  vendor?: string,
): string {
  const routed = vendor === undefined ? undefined : routes.get(vendor)
  return routed ?? (token.group === '' ? user.group : token.group)
}

/** The group of that name, where the user may use it: an open one, or the user's own. */
export function usableGroup({ groups }: Settings, { user }: KeyAndOwner, name: string): Group | undefined {
  const group = groups.get(name)
  return group && (group.open || group.name === user.group) ? group : undefined
}

/** What a caller is told whose group may not be used. */
export function groupRefused(name: string): GatewayError {
  return new GatewayError('group_not_allowed', `this API key may not use the group ${truncatedName(name)}`)
}
