import {
  alphabetMixedWithLatin,
  comparableName,
  differenceOf,
  escapeInvisible,
  isFullyVisible,
} from '../../domain/username.ts'
import { GatewayError } from '../../errors.ts'
import { inChunks } from './in-chunks.ts'
import type { Db } from './operation.ts'

/**
 * Throws if a user may not be given this name: if it has invisible characters or mixes alphabets, or equals
 * another user's as names are compared. `own` is the id of the user to be named. Existing names are not
 * checked.
 */
export async function refuseName(db: Db, username: string, own?: number): Promise<void> {
  refuseImitation(username)
  const others = (await namesakes(db, [username])).filter(({ id }) => id !== own)
  const taken = others.find((other) => other.username === username) ?? others[0]
  if (taken) throw takenName(username, taken.username)
}

/** Throws if new users may not be given these names, like `refuseName`, or if two of them are equal. */
export async function refuseNames(db: Db, usernames: readonly string[]): Promise<void> {
  usernames.forEach(refuseImitation)
  const taken = new Map(
    (await namesakes(db, usernames)).map((other) => [comparableName(other.username), other.username]),
  )
  for (const username of usernames) {
    const name = comparableName(username)
    const theirs = taken.get(name)
    if (theirs !== undefined) throw takenName(username, theirs)
    taken.set(name, username)
  }
}

function refuseImitation(username: string): void {
  if (!isFullyVisible(username))
    throw new GatewayError(
      'invalid_request',
      `username: expected a name without bidirectional controls and invisible characters, found "${escapeInvisible(username)}"`,
    )
  const alphabet = alphabetMixedWithLatin(username)
  if (alphabet === undefined) return
  throw new GatewayError(
    'invalid_request',
    `username: expected letters of one alphabet, found Latin and ${alphabet} ones in "${username}"`,
  )
}

/** Live users whose comparable name equals one of these. */
function namesakes(
  db: Db,
  usernames: readonly string[],
): Promise<{ readonly id: number; readonly username: string }[]> {
  return inChunks(usernames.map(comparableName), (names) =>
    db.selectFrom('users').select(['id', 'username']).where('comparable_name', 'in', names).execute(),
  )
}

/** Error for a name that is taken, in the same or another form. */
export function takenName(username: string, theirs: string): GatewayError {
  const alone =
    username === theirs
      ? ''
      : `, and "${username}" differs from it in ${differenceOf(username, theirs)} alone`
  return new GatewayError('invalid_request', `there is a user "${escapeInvisible(theirs)}" already${alone}`)
}
