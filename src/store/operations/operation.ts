import type { Kysely } from 'kysely'
import type { Database } from '../schema.ts'

/** Open transaction that an operation runs in; it is rolled back if the operation throws. */
export type Db = Kysely<Database>
