import { type SqlBool, sql } from 'kysely'
import { isFullyVisible, escapeInvisible, foldCase } from '../../domain/username.ts'
import { GatewayError } from '../../errors.ts'
import type { Db } from './operation.ts'

/**
 * Throws if a user may not be given this name: if it has invisible characters, or another user has it in any
 * case. `own` is the id of the user to be named. Existing names are not checked.
 */
export async function refuseName(db: Db, username: string, own?: number): Promise<void> {
  if (!isFullyVisible(username)) {
    throw new GatewayError(
      'invalid_request',
      `username: expected a name without bidirectional controls and invisible characters, found "${escapeInvisible(username)}"`,
    )
  }
  const wanted = foldCase(username)
  const alike = await db
    .selectFrom('users')
    .select(['id', 'username'])
    .where(sql<SqlBool>`lower(username) like ${patternOf(username)} escape '!'`)
    .where('deleted_time', 'is', null)
    .execute()
  const taken = alike.find((user) => user.id !== own && foldCase(user.username) === wanted)
  if (taken) throw takenName(username, taken.username)
}

/** Error for a name that is taken, in this or another case. */
export function takenName(username: string, theirs: string): GatewayError {
  const alone = username === theirs ? '' : `, and "${username}" differs from it in case alone`
  return new GatewayError('invalid_request', `there is a user "${theirs}" already${alone}`)
}

/**
 * Builds a LIKE pattern for lower-case names that matches all names that differ in case alone, and few
 * others. Letters beyond ASCII become wildcards, because not all databases know their case; so do k, s and i,
 * which are the other case of such letters.
 */
function patternOf(username: string): string {
  const ofLetter = (letter: string): string => {
    const lower = letter.toLowerCase()
    if (/[^\0-\x7f]|[ksi]/i.test(letter)) return lower === letter.toUpperCase() ? letter : '_'
    return /[%_!]/.test(letter) ? `!${letter}` : lower
  }
  return Array.from(username, ofLetter).join('')
}
