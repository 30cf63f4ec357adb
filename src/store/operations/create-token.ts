import type { Insertable } from 'kysely'
import { GatewayError } from '../../errors.ts'
import { type NewToken, TOKEN, type Token } from '../../domain/records/token.ts'
import type { Database } from '../schema.ts'
import { newTermColumns } from '../term-columns.ts'
import { hashKey, type Secrets, seal } from '../secrets.ts'
import { tokenFromRow } from '../token-rows.ts'
import type { Db } from './operation.ts'

/**
 * Creates a token; stores its key encrypted, and its HMAC for the lookup. Refuses the key of another token,
 * deleted ones included.
 */
export async function createToken(db: Db, token: NewToken, secrets: Secrets): Promise<Token> {
  const keyHash = hashKey(secrets, token.key)
  await refuseTakenKey(db, token.name, keyHash)
  const row = await db
    .insertInto('tokens')
    .values(columnsOfNewToken(token, keyHash))
    .returningAll()
    .executeTakeFirstOrThrow()
  await db
    .updateTable('tokens')
    .set({ key_cipher: seal(secrets, token.key, { table: 'tokens', row: row.id }) })
    .where('id', '=', row.id)
    .execute()
  return tokenFromRow(row)
}

/** Columns of a new token, whose encrypted key is bound to its id and follows. */
export function columnsOfNewToken(token: NewToken, keyHash: string): Insertable<Database['tokens']> {
  return { ...TOKEN.newRow(token), key_hash: keyHash, key_cipher: '', ...newTermColumns(token) }
}

/** Throws if a token has this key already. */
export async function refuseTakenKey(db: Db, name: string, keyHash: string): Promise<void> {
  const holder = await db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .select(['tokens.id', 'tokens.deleted_time', 'users.username'])
    .where('key_hash', '=', keyHash)
    .executeTakeFirst()
  if (!holder) return
  const whose = `${holder.id} of the user "${holder.username}"`
  const which = holder.deleted_time === null ? `the token ${whose}` : `the deleted token ${whose}`
  throw new GatewayError(
    'invalid_request',
    `the key of the token "${name}" belongs to ${which} already: give it another key`,
  )
}
