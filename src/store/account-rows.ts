import type { Db } from './operations/operation.ts'

/** Selects users that are not deleted. */
export function liveUsers(db: Db) {
  return db.selectFrom('users').where('deleted_time', 'is', null)
}

/** Selects tokens that are not deleted. */
export function liveTokens(db: Db) {
  return db.selectFrom('tokens').where('deleted_time', 'is', null)
}

/** Selects the tokens of a user that are not deleted. */
export function ownTokens(db: Db, userId: number) {
  return liveTokens(db).where('user_id', '=', userId)
}
