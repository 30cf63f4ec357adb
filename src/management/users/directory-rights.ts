import type { OidcProvider } from '../../domain/login-settings.ts'
import type { User } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'

/** Group of users who have none of the mapped values. */
const DEFAULT_GROUP = 'default'

/** Rights of a user that a directory determines; undefined ones are managed in the gateway. */
export interface DirectoryRights {
  readonly group: string | undefined
  readonly role: Exclude<Role, typeof Role.root> | undefined
}

/**
 * Rights that follow from the claims. A claim that is missing, or is neither a text nor a list of texts,
 * names no groups.
 */
export function directoryRights(
  { groupClaim, groups, admins }: OidcProvider,
  claims: Readonly<Record<string, unknown>>,
): DirectoryRights {
  if (groupClaim === undefined) return { group: undefined, role: undefined }
  const claimed = new Set([claims[groupClaim]].flat().filter((value) => typeof value === 'string'))
  const mapped = [...groups].find(([value]) => claimed.has(value))
  const isAdmin = admins.some((value) => claimed.has(value))
  return {
    group: groups.size === 0 ? undefined : (mapped?.[1] ?? DEFAULT_GROUP),
    role: admins.length === 0 ? undefined : isAdmin ? Role.admin : Role.user,
  }
}

/**
 * The rights that differ from a user's current ones. Root stays root: no directory can take the operator's
 * account.
 */
export function changedRights(
  { group, role }: Pick<User, 'group' | 'role'>,
  rights: DirectoryRights,
): { readonly group?: string; readonly role?: Role } {
  return {
    ...(rights.group !== undefined && rights.group !== group && { group: rights.group }),
    ...(rights.role !== undefined && role !== Role.root && rights.role !== role && { role: rights.role }),
  }
}
