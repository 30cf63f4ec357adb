import { z } from 'zod'
import { isLimited } from '../../domain/operator-terms.ts'
import type { Profile } from '../../domain/profile.ts'
import { Role, type User } from '../../domain/user.ts'
import { termSchema, type TermsObject, termsObject, type TermsOwner } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'

/** A profile in responses, with exactly these fields. `docs/api.md: User profile`. */
export const profileSchema = z.object({
  id: z.int(),
  username: z.string(),
  display_name: z.string(),
  role: z.int(),
  status: z.int(),
  email: z.string(),
  code_host_id: z.string(),
  chat_a_id: z.string(),
  oidc_id: z.string(),
  chat_b_id: z.string(),
  chat_c_id: z.string(),
  forum_id: z.string(),
  group: z.string(),
  quota: z.int(),
  used_quota: z.int(),
  request_count: z.int(),
  ...termSchema,
  aff_code: z.string(),
  aff_count: z.int(),
  aff_quota: z.int(),
  aff_history_quota: z.int(),
  inviter_id: z.int(),
  setting: z.string(),
  payment_customer: z.string(),
  sidebar_modules: z.string(),
  has_password: z.boolean(),
  permissions: z.object({
    sidebar_settings: z.boolean(),
    sidebar_modules: z.record(z.string(), z.unknown()),
  }),
})

/** A profile in responses. */
type ProfileObject = z.output<typeof profileSchema>

/** The permissions of each role in the console. */
const PERMISSIONS: Record<Role, z.output<typeof profileSchema>['permissions']> = {
  [Role.user]: { sidebar_settings: true, sidebar_modules: { admin: false } },
  [Role.admin]: { sidebar_settings: true, sidebar_modules: { admin: { setting: false } } },
  [Role.root]: { sidebar_settings: false, sidebar_modules: {} },
}

/** Converts a stored profile. */
export async function profileObject(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
  profile: Profile,
): Promise<ProfileObject> {
  return profileWithTerms(profile, await termsObject(store, userTerms(profile), nowMs()))
}

/** The owner of a user's budget. Only operators give users terms. */
export function userTerms({ id, budget, rateLimit }: User): TermsOwner {
  const isByOperator = budget !== undefined || isLimited(rateLimit)
  return { owner: `u:${id}`, budget, rateLimit, isByOperator }
}

/** Converts a stored profile whose terms are read. */
export function profileWithTerms(profile: Profile, terms: TermsObject): ProfileObject {
  return {
    id: profile.id,
    username: profile.username,
    display_name: profile.displayName,
    role: profile.role,
    status: profile.status,
    email: profile.email,
    code_host_id: profile.codeHostId,
    chat_a_id: profile.chatAId,
    oidc_id: profile.oidcId,
    chat_b_id: profile.chatBId,
    chat_c_id: profile.chatCId,
    forum_id: profile.forumId,
    group: profile.group,
    quota: profile.quota,
    used_quota: profile.usedQuota,
    request_count: profile.requestCount,
    ...terms,
    aff_code: profile.affCode,
    aff_count: profile.affCount,
    aff_quota: profile.affQuota,
    aff_history_quota: profile.affHistoryQuota,
    inviter_id: profile.inviterId,
    setting: profile.setting,
    payment_customer: profile.paymentCustomer,
    sidebar_modules: profile.sidebarModules,
    has_password: profile.hasPassword,
    permissions: PERMISSIONS[profile.role],
  }
}
