import type { Generated } from 'kysely'
import type { TermsColumns } from './account-terms.ts'

/** Users: `docs/api.md: User profile`, and columns that are never shown. */
export interface UsersTable extends TermsColumns {
  id: Generated<number>
  /** Unique, deleted users included. */
  username: string
  display_name: string
  role: number
  status: number
  email: string
  code_host_id: string
  chat_a_id: string
  oidc_id: string
  chat_b_id: string
  chat_c_id: string
  forum_id: string
  group_name: string
  quota: number
  used_quota: number
  request_count: number
  aff_code: string
  aff_count: number
  aff_quota: number
  aff_history_quota: number
  inviter_id: number
  setting: string
  payment_customer: string
  sidebar_modules: string
  password_hash: string | null
  access_token_hash: string | null
  /** Administrator's note; never shown to the user. */
  remark: Generated<string>
  /** Original name of a renamed user, by which gateway.yaml may still declare it. */
  first_username: Generated<string | null>
  /** Form in which names are compared; null for deleted users. */
  comparable_name: string | null
  created_time: number
  deleted_time: number | null
}
