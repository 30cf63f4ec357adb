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
    display_name: profile.display_name,
    role: profile.role,
    status: profile.status,
    email: profile.email,
    code_host_id: profile.code_host_id,
    chat_a_id: profile.chat_a_id,
    oidc_id: profile.oidc_id,
    chat_b_id: profile.chat_b_id,
    chat_c_id: profile.chat_c_id,
    forum_id: profile.forum_id,
    group: profile.group,
    quota: profile.quota,
    used_quota: profile.used_quota,
    request_count: profile.request_count,
    ...terms,
    aff_code: profile.aff_code,
    aff_count: profile.aff_count,
    aff_quota: profile.aff_quota,
    aff_history_quota: profile.aff_history_quota,
    inviter_id: profile.inviter_id,
    setting: profile.setting,
    payment_customer: profile.payment_customer,
    sidebar_modules: profile.sidebar_modules,
    has_password: profile.has_password,
    permissions: PERMISSIONS[profile.role],
  }
}
