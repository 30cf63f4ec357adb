import { type SqlBool, sql } from 'kysely'
import { isFullyVisible, escapeInvisible, foldCase } from '../../domain/username.ts'
import { GatewayError } from '../../errors.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'

/** New names from which on all names are read: to look for names one by one scans the table for each. */
const MANY = 20

/**
 * Throws if a user may not be given this name: if it has invisible characters, or another user has it in any
 * case. `own` is the id of the user to be named. Existing names are not checked.
 */
export async function refuseName(db: Db, username: string, own?: number): Promise<void> {
  refuseInvisible(username)
  const wanted = foldCase(username)
  const taken = (await alike(db, username)).find(
    (user) => user.id !== own && foldCase(user.username) === wanted,
  )
  if (taken) throw takenName(username, taken.username)
}

/** Throws if new users may not be given these names, as `refuseName` does, or share one among themselves. */
export async function refuseNames(db: Db, usernames: readonly string[]): Promise<void> {
  usernames.forEach(refuseInvisible)
  const others =
    usernames.length >= MANY
      ? await db.selectFrom('users').select('username').where('deleted_time', 'is', null).execute()
      : await inChunks(usernames, ([username = '']) => alike(db, username), 1)
  const taken = new Map(others.map(({ username }) => [foldCase(username), username]))
  for (const username of usernames) {
    const theirs = taken.get(foldCase(username))
    if (theirs !== undefined) throw takenName(username, theirs)
    taken.set(foldCase(username), username)
  }
}

function refuseInvisible(username: string): void {
  if (isFullyVisible(username)) return
  throw new GatewayError(
    'invalid_request',
    `username: expected a name without bidirectional controls and invisible characters, found "${escapeInvisible(username)}"`,
  )
}

/** Live users whose names may differ from this one in case alone. */
function alike(db: Db, username: string): Promise<{ readonly id: number; readonly username: string }[]> {
  return db
    .selectFrom('users')
    .select(['id', 'username'])
    .where(sql<SqlBool>`lower(username) like ${patternOf(username)} escape '!'`)
    .where('deleted_time', 'is', null)
    .execute()
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
