import type { DatabaseSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import { SQLITE_TYPES } from '../migrations/column-types.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import type { Database } from '../schema.ts'
import type { Secrets } from '../secrets.ts'
import { kyselyOver } from './dialect.ts'

/** Brings the schema up to date, and makes sure that the secret is the one that the database was made with. */
export async function prepareDatabase(connection: DatabaseSync, secrets: Secrets): Promise<void> {
  const db = kyselyOver(connection)
  await migrateToLatest(db, SQLITE_TYPES)
  await refuseOtherSecret(db, secrets)
}

async function refuseOtherSecret(db: Kysely<Database>, secrets: Secrets): Promise<void> {
  const identity = await db.selectFrom('store_identity').select('key_check').executeTakeFirst()
  if (!identity) {
    await db.insertInto('store_identity').values({ id: 1, key_check: secrets.check }).execute()
  } else if (identity.key_check !== secrets.check) {
    throw new Error(
      'this database was made with another secret, and its keys cannot be read with this one: set GATEWAY_SECRET to the ' +
        'secret that it was made with, or, if none was set, put the file "secret" of its data folder back',
    )
  }
}
