import type { Kysely } from 'kysely'
import type { Database } from '../schema.ts'

/**
 * What an operation runs on: one transaction that is already begun. It opens none of its own, and what it
 * wrote is gone if it throws.
 */
export type Db = Kysely<Database>
