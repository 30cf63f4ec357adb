import { type SqlBool, sql } from 'kysely'
import { isFullyVisible, escapeInvisible, foldCase } from '../../domain/username.ts'
import { GatewayError } from '../../errors.ts'
import type { Db } from './operation.ts'

/**
 * Refuses a name that a user may not be given: one that does not show all of itself, and one that another
 * user has, in whatever case. `own` is the id of the user who is to have it. Names that are there already
 * stay as they are.
 */
export async function refuseName(db: Db, username: string, own?: number): Promise<void> {
  if (!isFullyVisible(username)) {
    throw new GatewayError(
      'invalid_request',
      `username: expected a name without controls of direction and characters that are not seen, found "${escapeInvisible(username)}"`,
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

/** There is a user of that name, or of one that differs in case alone. */
export function takenName(username: string, theirs: string): GatewayError {
  const alone = username === theirs ? '' : `, and "${username}" differs from it in case alone`
  return new GatewayError('invalid_request', `there is a user "${theirs}" already${alone}`)
}

/**
 * A pattern for names in lower case that fits all that differ in case alone, and few others: databases know
 * the case of ASCII, and not all of them that of other letters, of which some are k, s and i in the other
 * case.
 */
function patternOf(username: string): string {
  const ofLetter = (letter: string): string => {
    const lower = letter.toLowerCase()
    if (/[^\0-\x7f]|[ksi]/i.test(letter)) return lower === letter.toUpperCase() ? letter : '_'
    return /[%_!]/.test(letter) ? `!${letter}` : lower
  }
  return Array.from(username, ofLetter).join('')
}
