import { TOKEN } from '../../../domain/records/token.ts'
import { HOLD } from '../../../domain/records/usage.ts'
import { recordColumns } from './record-columns.ts'
import type { Table } from './table.ts'

const TERMS = {
  budget: 'integer default 0',
  budget_period: "text default ''",
  rate_limit_requests: 'integer default 0',
  rate_limit_tokens: 'integer default 0',
  rate_limit_parallel: 'integer default 0',
  rate_limit_window: 'integer default 0',
}

/** Users and tokens, with their sign-ins, holds and budgets. */
export const ACCOUNT_TABLES: readonly Table[] = [
  {
    name: 'store_identity',
    columns: { id: 'integer primary key', key_check: 'text' },
  },
  {
    name: 'users',
    columns: {
      id: 'id',
      username: 'text unique',
      display_name: 'text',
      role: 'integer',
      status: 'integer',
      email: 'text',
      code_host_id: 'text',
      chat_a_id: 'text',
      oidc_id: 'text',
      chat_b_id: 'text',
      chat_c_id: 'text',
      forum_id: 'text',
      group_name: 'text',
      quota: 'integer',
      used_quota: 'integer',
      request_count: 'integer',
      aff_code: 'text',
      aff_count: 'integer',
      aff_quota: 'integer',
      aff_history_quota: 'integer',
      inviter_id: 'integer',
      setting: 'text',
      payment_customer: 'text',
      sidebar_modules: 'text',
      password_hash: 'text?',
      access_token_hash: 'text unique?',
      created_time: 'integer',
      deleted_time: 'integer?',
      remark: "text default ''",
      first_username: 'text?',
      ...TERMS,
      comparable_name: 'text?',
    },
    // Not unique: transactions, which are serializable, keep names of users apart.
    indexes: { users_by_comparable_name: '(comparable_name)' },
  },
  { name: TOKEN.table, columns: recordColumns(TOKEN), indexes: { tokens_by_user: '(user_id, id)' } },
  {
    name: HOLD.table,
    columns: recordColumns(HOLD),
  },
  {
    name: 'budget_periods',
    columns: { account: 'text primary key', owner: 'text', amount: 'integer', used: 'integer' },
    indexes: { budget_periods_by_owner: '(owner)' },
  },
  {
    name: 'budget_crossings',
    columns: { account: 'text', percent: 'integer', amount: 'integer', used: 'integer' },
    key: ['account', 'percent'],
  },
  {
    name: 'sessions',
    columns: {
      id_hash: 'text primary key',
      user_id: 'integer references users (id)',
      created_time: 'integer',
      expires_time: 'integer',
      address: "text default ''",
      user_agent: "text default ''",
      last_used: 'integer default 0',
      access_token_hash: 'text?',
      logout_cipher: 'text?',
    },
    indexes: { sessions_by_user: '(user_id)', sessions_by_end: '(expires_time)' },
  },
  {
    name: 'identities',
    columns: {
      issuer: 'text',
      subject: 'text',
      user_id: 'integer references users (id)',
      created_time: 'integer',
    },
    key: ['issuer', 'subject'],
    indexes: { identities_by_user: '(user_id)' },
  },
  {
    name: 'used_states',
    columns: { hash: 'text primary key', expires_time: 'integer' },
    indexes: { used_states_by_end: '(expires_time)' },
  },
]
