import type { ManagedUser } from '../domain/profile.ts'
import type { Role } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'

/** Who asks for a change of a user. */
export interface Actor {
  readonly id: number
  readonly role: number
}

/** Whoever has a shell on the gateway's folder: above every role. */
export const OPERATOR: Actor = { id: 0, role: Number.POSITIVE_INFINITY }

const ROOT = 100

/**
 * Whose turn it is where those who are signed in share something: all that one account asks for is one queue.
 */
export function fairQueueKey({ id }: Pick<Actor, 'id'>): string {
  return `account ${id}`
}

/** The role that a user must be below for this actor to act on it; undefined = whoever it is, as for root. */
export function roleCeiling({ role }: Actor): number | undefined {
  return role >= ROOT ? undefined : role
}

/** Refuses to give a role that is not below the actor's own. */
export function requireAssignable(by: Actor, role: Role): void {
  if (role < by.role) return
  throw new GatewayError('role_too_low', `role: expected one below your own, which is ${by.role}`)
}

/** Refuses a user whom the actor may not act on. The store asks the same once more, when it writes. */
export function requireManageable(by: Actor, { username, role }: Pick<ManagedUser, 'username' | 'role'>): void {
  const reach = roleCeiling(by)
  if (reach === undefined || role < reach) return
  throw new GatewayError('role_too_low', `the role of the user "${username}" is not below yours`)
}
