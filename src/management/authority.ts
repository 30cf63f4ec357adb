import type { ManagedUser } from '../domain/records/user.ts'
import { Role } from '../domain/role.ts'
import { GatewayError } from '../errors.ts'

/** The account that requests a change. */
export interface Actor {
  readonly id: number
  readonly role: number
}

/** The operator at the command line, above every role. */
export const OPERATOR: Actor = { id: 0, role: Number.POSITIVE_INFINITY }

/** The key of fair queues that accounts share: all requests of one account are one queue. */
export function fairQueueKey({ id }: Pick<Actor, 'id'>): string {
  return `account ${id}`
}

/** The role that a user must be below for the actor to change it; undefined = no bound, as for root. */
export function roleCeiling({ role }: Actor): number | undefined {
  return role >= Role.root ? undefined : role
}

/** Whether the actor is an operator for this user: below root, no account is one for itself. */
export function isOperator(by: Actor, userId: number): boolean {
  return roleCeiling(by) === undefined || by.id !== userId
}

/** Throws where an assigned role is not below the actor's own. */
export function requireAssignable(by: Actor, role: Role): void {
  if (role < by.role) return
  throw new GatewayError('role_too_low', `role: expected one below your own, which is ${by.role}`)
}

/** Throws where the actor may not change a user. The store checks the same again when it writes. */
export function requireManageable(
  by: Actor,
  { username, role }: Pick<ManagedUser, 'username' | 'role'>,
): void {
  const ceiling = roleCeiling(by)
  if (ceiling === undefined || role < ceiling) return
  throw new GatewayError('role_too_low', `the role of the user "${username}" is not below yours`)
}
