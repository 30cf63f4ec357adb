import type { ManagedUser } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { GatewayError } from '../errors.ts'

/** The account that requests a change. */
export interface Actor {
  readonly id: number
  readonly role: number
}

/** The operator at the command line, who ranks above every role. */
export const OPERATOR: Actor = { id: 0, role: Number.POSITIVE_INFINITY }

/** The key of an account in fair queues: all requests of one account wait in one queue. */
export function fairQueueKey({ id }: Pick<Actor, 'id'>): string {
  return `account ${id}`
}

/**
 * The role that a user must be below for the actor to change that user; undefined if there is no bound, as
 * for root.
 */
export function roleCeiling({ role }: Actor): number | undefined {
  return role >= Role.root ? undefined : role
}

/**
 * Whether the actor acts as an operator for this user. Below root, an account is not an operator for itself.
 */
export function isOperator(by: Actor, userId: number): boolean {
  return roleCeiling(by) === undefined || by.id !== userId
}

/** Throws if an assigned role is not below the actor's own. */
export function requireAssignable(by: Actor, role: Role): void {
  if (role < by.role) return
  throw new GatewayError('role_too_low', `role: expected one below your own, which is ${by.role}`)
}

/** Throws if the actor may not change a user. The store checks this again when it writes. */
export function requireManageable(
  by: Actor,
  { username, role }: Pick<ManagedUser, 'username' | 'role'>,
): void {
  const ceiling = roleCeiling(by)
  if (ceiling === undefined || role < ceiling) return
  throw new GatewayError('role_too_low', `the role of the user "${username}" is not below yours`)
}
