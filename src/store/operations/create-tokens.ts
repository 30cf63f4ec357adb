import type { NewToken } from '../../domain/records/token.ts'
import { sql } from 'kysely'
import { hashKey, seal, type Secrets } from '../secrets.ts'
import { columnsOfNewToken } from './create-token.ts'
import type { Db } from './operation.ts'

/** Rows in one statement. */
const MAX_ROWS = 500

/**
 * Creates tokens as `createToken` does, in a few statements whatever their number; their keys must be free.
 * Returns their ids in the order given.
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
