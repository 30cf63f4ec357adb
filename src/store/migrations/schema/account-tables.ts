import { TOKEN } from '../../../domain/records/token.ts'
import { USER } from '../../../domain/records/user.ts'
import { HOLD } from '../../../domain/records/usage.ts'
import { recordColumns } from './record-columns.ts'
import type { Table } from './table.ts'

/** Users and tokens, with their sign-ins, holds and budgets. */
export const ACCOUNT_TABLES: readonly Table[] = [
  {
    name: 'store_identity',
    columns: { id: 'integer primary key', key_check: 'text' },
  },
  {
    name: USER.table,
    columns: recordColumns(USER),
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
