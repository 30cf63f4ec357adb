import type { Settings } from '../../domain/settings.ts'
import type { User } from '../../domain/records/user.ts'
import { parseVendorRoutes } from '../../domain/vendor-routes.ts'
import { GatewayError } from '../../errors.ts'

/** Throws where the configuration does not declare a group; `field` is its name in the message. */
export function requireGroup(settings: Settings, group: string, field = 'group'): void {
  if (settings.groups.has(group)) return
  throw new GatewayError('invalid_request', `${field}: there is no group "${group}" in the configuration`)
}

/** Throws where a token's routing names a group that a token of this user may not name. */
export function requireGroups(
  settings: Settings,
  user: User,
  { group, vendor_routes }: { readonly group?: string; readonly vendor_routes?: string },
): void {
  if (group) requireTokenGroup(settings, user, group)
  for (const named of parseVendorRoutes(vendor_routes ?? '')?.values() ?? [])
    requireTokenGroup(settings, user, named, 'vendor_routes')
}

// Throws for an unknown group, and for a closed one that is not the user's.
function requireTokenGroup(settings: Settings, user: User, group: string, field = 'group'): void {
  requireGroup(settings, group, field)
  if (group === user.group || settings.groups.get(group)?.open) return
  throw new GatewayError(
    'invalid_request',
    `${field}: "${group}" is closed, and not the group of the user "${user.username}"`,
  )
}
