import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.ts'
import { databaseMessageKey, type Secrets } from '../secrets.ts'

/** Bytes of a block of SHA-256, and what HMAC (RFC 2104) combines with the key. */
const BLOCK_BYTES = 64
const INNER = 0x36
const OUTER = 0x5c

/** Stores the key with which the database signs its messages to the nodes (`bank_announce`). */
export async function storeMessageKey(db: Kysely<Database>, secrets: Secrets): Promise<void> {
  const key = databaseMessageKey(secrets)
  const block = (filling: number): Buffer =>
    Buffer.from(Array.from({ length: BLOCK_BYTES }, (_, index) => (key[index] ?? 0) ^ filling))
  await sql`insert into message_key values (1, ${block(INNER)}, ${block(OUTER)})
    on conflict (id) do update set inner_block = excluded.inner_block, outer_block = excluded.outer_block
    where message_key.inner_block <> excluded.inner_block`.execute(db)
}
