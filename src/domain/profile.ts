import type { User } from './user.ts'

/** An account holder as shown to itself: `docs/api.md: User profile`. */
export interface Profile extends User {
  readonly display_name: string
  readonly email: string
  readonly code_host_id: string
  readonly chat_a_id: string
  readonly oidc_id: string
  readonly chat_b_id: string
  readonly chat_c_id: string
  readonly forum_id: string
  readonly aff_code: string
  readonly aff_count: number
  readonly aff_quota: number
  readonly aff_history_quota: number
  /** 0 = nobody. */
  readonly inviter_id: number
  /** JSON; empty = never set. */
  readonly setting: string
  readonly payment_customer: string
  readonly sidebar_modules: string
  readonly has_password: boolean
}

/** An account holder as shown to administrators. `docs/api.md: Users`. */
export interface ManagedUser extends Profile {
  /** Note that is not shown to the user. */
  readonly remark: string
  /** Unix seconds. */
  readonly created_time: number
}
