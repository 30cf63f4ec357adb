import type { ManagedUser } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { GatewayError } from '../errors.ts'

/** Who requests a change. */
export interface Actor {
  readonly id: number
  readonly role: number
}

/** The operator at the command line, whose rank is above every role. */
export const OPERATOR: Actor = { id: 0, role: Number.POSITIVE_INFINITY }

/** Name of an account in queues that treat accounts fairly: all its requests wait in one queue. */
export function fairQueueKey({ id }: Pick<Actor, 'id'>): string {
  return `account ${id}`
}

/**
 * The role below which a user must be, so that the actor may change the user; undefined if the actor may
 * change everyone, as root may.
 */
export function roleCeiling({ role }: Actor): number | undefined {
  return role >= Role.root ? undefined : role
}

/**
 * Whether the actor may set limits of this user as an operator. Actors below root may not do so for
 * themselves.
 */
export function maySetOperatorLimits(by: Actor, userId: number): boolean {
  return roleCeiling(by) === undefined || by.id !== userId
}

/** Throws unless the role that is to be assigned is below the actor's own. */
export function requireAssignableRole(by: Actor, role: Role): void {
  if (role < by.role) return
  throw new GatewayError('role_too_low', `role: expected one below your own, which is ${by.role}`)
}

/** Throws unless the actor may change this user. The database checks this again when it writes. */
export function requireManageableUser(
  by: Actor,
  { username, role }: Pick<ManagedUser, 'username' | 'role'>,
): void {
  const ceiling = roleCeiling(by)
  if (ceiling === undefined || role < ceiling) return
  throw new GatewayError('role_too_low', `the role of the user "${username}" is not below yours`)
}
