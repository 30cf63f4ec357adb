import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/** Creates users, tokens, holds and the usage log, as `schema.ts` describes them. */
export function accountsAndLedger(types: ColumnTypes): Migration {
  return {
    async up(db) {
      await createStoreIdentity(db, types)
      await createUsers(db, types)
      await createTokens(db, types)
      await createHolds(db, types)
      await createUsageLog(db, types)
    },
  }
}

async function createStoreIdentity(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('store_identity')
    .addColumn('id', integer, (column) => column.notNull().primaryKey())
    .addColumn('key_check', 'text', (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
}

async function createUsers(db: Kysely<unknown>, { id, asId, integer, counted }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('users')
    .addColumn('id', id, asId)
    .addColumn('username', 'text', (column) => column.notNull().unique())
    .addColumn('display_name', 'text', (column) => column.notNull())
    .addColumn('role', integer, (column) => column.notNull())
    .addColumn('status', integer, (column) => column.notNull())
    .addColumn('email', 'text', (column) => column.notNull())
    .addColumn('code_host_id', 'text', (column) => column.notNull())
    .addColumn('chat_a_id', 'text', (column) => column.notNull())
    .addColumn('oidc_id', 'text', (column) => column.notNull())
    .addColumn('chat_b_id', 'text', (column) => column.notNull())
    .addColumn('chat_c_id', 'text', (column) => column.notNull())
    .addColumn('forum_id', 'text', (column) => column.notNull())
    .addColumn('group_name', 'text', (column) => column.notNull())
    .addColumn('quota', integer, (column) => column.notNull())
    .addColumn('used_quota', integer, (column) => column.notNull())
    .addColumn('request_count', integer, (column) => column.notNull())
    .addColumn('aff_code', 'text', (column) => column.notNull())
    .addColumn('aff_count', integer, (column) => column.notNull())
    .addColumn('aff_quota', integer, (column) => column.notNull())
    .addColumn('aff_history_quota', integer, (column) => column.notNull())
    .addColumn('inviter_id', integer, (column) => column.notNull())
    .addColumn('setting', 'text', (column) => column.notNull())
    .addColumn('payment_customer', 'text', (column) => column.notNull())
    .addColumn('sidebar_modules', 'text', (column) => column.notNull())
    .addColumn('password_hash', 'text')
    .addColumn('access_token_hash', 'text', (column) => column.unique())
    .addColumn('created_time', integer, (column) => column.notNull())
    .addColumn('deleted_time', integer)
    .modifyEnd(counted)
    .execute()
}

async function createTokens(db: Kysely<unknown>, { id, asId, integer, counted }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('tokens')
    .addColumn('id', id, asId)
    .addColumn('user_id', integer, (column) => column.notNull().references('users.id'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('key_hash', 'text', (column) => column.notNull().unique())
    .addColumn('key_cipher', 'text', (column) => column.notNull())
    .addColumn('status', integer, (column) => column.notNull())
    .addColumn('created_time', integer, (column) => column.notNull())
    .addColumn('accessed_time', integer, (column) => column.notNull())
    .addColumn('expired_time', integer, (column) => column.notNull())
    .addColumn('remain_quota', integer, (column) => column.notNull())
    .addColumn('unlimited_quota', integer, (column) => column.notNull())
    .addColumn('used_quota', integer, (column) => column.notNull())
    .addColumn('model_limits_enabled', integer, (column) => column.notNull())
    .addColumn('model_limits', 'text', (column) => column.notNull())
    .addColumn('allow_ips', 'text')
    .addColumn('group_name', 'text', (column) => column.notNull())
    .addColumn('vendor_routes', 'text', (column) => column.notNull())
    .addColumn('deleted_time', integer)
    .modifyEnd(counted)
    .execute()
  await db.schema.createIndex('tokens_by_user').on('tokens').columns(['user_id', 'id']).execute()
}

async function createHolds(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('holds')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('owner', 'text', (column) => column.notNull())
    .addColumn('token_id', integer, (column) => column.notNull().references('tokens.id'))
    .addColumn('user_id', integer, (column) => column.notNull().references('users.id'))
    .addColumn('amount', integer, (column) => column.notNull())
    .addColumn('prompt_amount', integer, (column) => column.notNull())
    .addColumn('progress_amount', integer, (column) => column.notNull())
    .addColumn('started_ms', integer, (column) => column.notNull())
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('channel', 'text', (column) => column.notNull())
    .addColumn('group_name', 'text', (column) => column.notNull())
    .addColumn('stream', integer, (column) => column.notNull())
    .addColumn('price_version', 'text', (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
}

async function createUsageLog(db: Kysely<unknown>, { integer, keyed }: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('usage_log')
    .addColumn('id', 'text', (column) => column.notNull().primaryKey())
    .addColumn('ended_ms', integer, (column) => column.notNull())
    .addColumn('user_id', integer, (column) => column.notNull().references('users.id'))
    .addColumn('token_id', integer, (column) => column.notNull().references('tokens.id'))
    .addColumn('model', 'text', (column) => column.notNull())
    .addColumn('upstream_model', 'text', (column) => column.notNull())
    .addColumn('channel', 'text', (column) => column.notNull())
    .addColumn('group_name', 'text', (column) => column.notNull())
    .addColumn('input_tokens', integer, (column) => column.notNull())
    .addColumn('cache_read_tokens', integer, (column) => column.notNull())
    .addColumn('cache_write_5m_tokens', integer, (column) => column.notNull())
    .addColumn('cache_write_1h_tokens', integer, (column) => column.notNull())
    .addColumn('output_tokens', integer, (column) => column.notNull())
    .addColumn('reasoning_tokens', integer, (column) => column.notNull())
    .addColumn('web_searches', integer, (column) => column.notNull())
    .addColumn('quota', integer, (column) => column.notNull())
    .addColumn('price_version', 'text', (column) => column.notNull())
    .addColumn('duration_ms', integer, (column) => column.notNull())
    .addColumn('first_byte_ms', integer)
    .addColumn('stream', integer, (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .modifyEnd(keyed)
    .execute()
  await db.schema.createIndex('usage_log_by_user').on('usage_log').columns(['user_id', 'ended_ms']).execute()
}
