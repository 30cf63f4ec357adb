import type { Group } from '../domain/records/group.ts'
import type { Settings } from '../domain/settings.ts'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { Token } from '../domain/records/token.ts'
import { parseVendorRoutes } from '../domain/vendor-routes.ts'
import { GatewayError } from '../errors.ts'
import { truncateName } from './truncate-name.ts'

/** A copy of the API key (token) without restrictions on models. */
export function withoutModelLimits(token: Token): Token {
  return { ...token, model_limits_enabled: false }
}

/** Models that the `model_limits` of an API key (token) allow; undefined if all are allowed. */
export function allowedModelNames(token: Token): ReadonlySet<string> | undefined {
  if (!token.model_limits_enabled) return undefined
  const names = new Set<string>()
  for (const entry of token.model_limits.split(',')) {
    const name = entry.trim()
    if (name !== '') names.add(name)
  }
  return names
}

/**
 * Throws `model_not_allowed` (403) if the API key allows neither this name nor the name without its suffix.
 */
export function requireAllowedModel(token: Token, model: string, plain: string): void {
  const allowed = allowedModelNames(token)
  if (!allowed || allowed.has(model) || allowed.has(plain)) return
  throw new GatewayError('model_not_allowed', `this API key may not use the model ${truncateName(model)}`)
}

/**
 * Groups that an API key (token) assigns to single vendors. Throws `group_not_allowed` if they cannot be
 * read.
 */
export function vendorGroupsOf(token: Token): ReadonlyMap<string, string> {
  const routes = parseVendorRoutes(token.vendor_routes)
  if (!routes) throw new GatewayError('group_not_allowed', 'the vendor_routes of this API key cannot be read')
  return routes
}

/**
 * The group for a vendor's models: the one that the API key assigns to this vendor, otherwise the key's
 * group, otherwise the user's.
 */
export function groupNameForVendor(
  { token, user }: Caller,
  routes: ReadonlyMap<string, string>,
  vendor?: string,
): string {
  const routed = vendor === undefined ? undefined : routes.get(vendor)
  return routed ?? (token.group === '' ? user.group : token.group)
}

/** The groups to which calls of an API key may be charged: the key's or the user's, and those that the key assigns to vendors. */
export function chargeableGroups({ token, user }: Caller): readonly string[] {
  const routes = parseVendorRoutes(token.vendor_routes)?.values() ?? []
  return [token.group === '' ? user.group : token.group, ...routes]
}

/**
 * The group of this name, if the API key may use it: a group that is open to all users, the user's own, or the group that
 * the key was imported with.
 */
export function usableGroup({ groups }: Settings, { token, user }: Caller, name: string): Group | undefined {
  const group = groups.get(name)
  return group && (group.open || name === user.group || name === token.team_group) ? group : undefined
}

/** The error for a group that may not be used. */
export function groupRefusedError(name: string): GatewayError {
  return new GatewayError('group_not_allowed', `this API key may not use the group ${truncateName(name)}`)
}
