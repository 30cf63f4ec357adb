import { type Insertable, sql } from 'kysely'
import { type NewToken, TOKEN, type Token } from '../../domain/records/token.ts'
import { GatewayError } from '../../errors.ts'
import { ownTokens } from '../live-rows.ts'
import type { Database } from '../schema.ts'
import { hashKey, seal, type Secrets } from '../secrets.ts'
import { newTermColumns } from '../term-columns.ts'
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

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

/**
 * Creates tokens like `createToken`, with a few statements for any number of them; their keys must be free.
 * Returns their ids in the given order.
 */
export async function createTokens(db: Db, tokens: readonly NewToken[], secrets: Secrets): Promise<number[]> {
  const ids: number[] = []
  for (let start = 0; start < tokens.length; start += MAX_ROWS)
    ids.push(...(await createSome(db, tokens.slice(start, start + MAX_ROWS), secrets)))
  return ids
}

async function createSome(db: Db, tokens: readonly NewToken[], secrets: Secrets): Promise<number[]> {
  const hashes = tokens.map(({ key }) => hashKey(secrets, key))
  const made = await db
    .insertInto('tokens')
    .values(tokens.map((token, index) => columnsOfNewToken(token, hashes[index] ?? '')))
    .returning(['id', 'key_hash'])
    .execute()
  const idOf = new Map(made.map(({ id, key_hash }) => [key_hash, id]))
  const ids = hashes.map((hash) => idOf.get(hash) ?? 0)
  const sealed = tokens.map(({ key }, index) => {
    const id = ids[index] ?? 0
    const cipher = seal(secrets, key, { table: 'tokens', row: id })
    return sql`(cast(${id} as bigint), cast(${cipher} as text))`
  })
  await sql`
    with sealed (id, cipher) as (values ${sql.join(sealed)})
    update tokens set key_cipher = sealed.cipher from sealed where tokens.id = sealed.id
  `.execute(db)
  return ids
}

/**
 * Creates a token for an existing user with fewer than `maxTokens` live ones. Counts in the same transaction,
 * so that concurrent requests cannot exceed the limit.
 */
export async function createUserToken(
  db: Db,
  { token, maxTokens }: { readonly token: NewToken; readonly maxTokens: number },
  secrets: Secrets,
): Promise<Token> {
  // Changes nothing; locks the user's row if the database runs writes concurrently.
  const user = await db
    .updateTable('users')
    .set((eb) => ({ status: eb.ref('status') }))
    .where('id', '=', token.user_id)
    .where('deleted_time', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (!user) throw new GatewayError('not_found', 'the user is gone')
  const { count } = await ownTokens(db, user.id)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count >= maxTokens) {
    throw new GatewayError(
      'invalid_request',
      `a user may have ${maxTokens} tokens at most (max_user_tokens), and this one has ${count}`,
    )
  }
  return createToken(db, token, secrets)
}
