import { createHash } from 'node:crypto'
import { GatewayError } from '../errors.ts'
import { type ManagedUser, USER } from './records/user.ts'
import { type Fields, type Values } from './records/record.ts'
import { TOKEN, type Token, TOKEN_STATUS } from './records/token.ts'

/** Number of hexadecimal digits in a version. */
const DIGITS = 16

/**
 * A hash of an object's values, which changes when any value changes. Clients send it with a change, so that
 * they do not overwrite a change by somebody else.
 */
export function versionOf(values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, DIGITS)
}

/** The version of a token. It depends only on what people edit, not on what calls change. */
export function tokenVersion(token: Token): string {
  return versionOf([
    ...editedValues(TOKEN.fields, token),
    // Calls make a token expired or exhausted, which must not change the version; only people disable it.
    token.status === TOKEN_STATUS.disabled,
    token.budget,
    token.rateLimit,
    token.operator_terms,
  ])
}

/** The version of a user. It depends only on what people edit, not on the quota, which calls change. */
export function userVersion(user: ManagedUser): string {
  return versionOf([...editedValues(USER.fields, user), user.status, user.budget, user.rateLimit])
}

function editedValues<F extends Fields>(fields: F, object: Values<F>): unknown[] {
  const edited = Object.entries(fields).filter(([, { edit, moves }]) => edit && !moves)
  return edited.map(([name]) => (object as Readonly<Record<string, unknown>>)[name])
}

/** Throws `changed_meanwhile` if an object was changed since the client read the version that it sent. */
export function requireVersion(given: string | undefined, present: string): void {
  if (given === undefined || given === present) return
  throw new GatewayError(
    'changed_meanwhile',
    'somebody else has changed this meanwhile: read it again, and repeat the change',
  )
}
