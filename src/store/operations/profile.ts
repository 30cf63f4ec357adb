import type { Profile } from '../../domain/profile.ts'
import { userFromRow } from '../user-rows.ts'
import type { Db } from './operation.ts'

/** Everything of a user that may be shown; null if there is none of that id, or no longer. */
export async function profile(db: Db, { userId }: { readonly userId: number }): Promise<Profile | null> {
  const row = await db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', userId)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  if (!row) return null
  return {
    ...userFromRow(row),
    displayName: row.display_name,
    email: row.email,
    codeHostId: row.code_host_id,
    chatAId: row.chat_a_id,
    oidcId: row.oidc_id,
    chatBId: row.chat_b_id,
    chatCId: row.chat_c_id,
    forumId: row.forum_id,
    affCode: row.aff_code,
    affCount: row.aff_count,
    affQuota: row.aff_quota,
    affHistoryQuota: row.aff_history_quota,
    inviterId: row.inviter_id,
    setting: row.setting,
    paymentCustomer: row.payment_customer,
    sidebarModules: row.sidebar_modules,
  }
}
