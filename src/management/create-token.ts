import { z } from 'zod'
import { allowListLines, isAddressRange } from '../domain/ip-allow-list.ts'
import { TOKEN_STATUS } from '../domain/token.ts'
import { generateKey } from '../store/generate-key.ts'
import { requireTokenGroup, requireVendorRoutes } from './allowed-group.ts'
import { findUser } from './find-user.ts'
import type { ManagementParts } from './parts.ts'
import { requireQuota } from './quota-bound.ts'
import { groupField, listField, nameField, readInput, userField } from './read-input.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

const flag = z.boolean({ error: 'expected true or false' }).nullish()

/** The writable fields of `docs/api.md: Token`; null in an optional one is absence. */
const INPUT = z.object(
  {
    user: userField,
    name: nameField(50),
    expired_time: z
      .int({ error: 'expected -1 (never) or a time in Unix seconds' })
      .refine((time) => time === -1 || time > 0, { error: 'expected -1 (never) or a time in Unix seconds' }),
    remain_quota: z.int({ error: 'expected a whole number of quota units' }),
    unlimited_quota: flag,
    model_limits_enabled: flag,
    model_limits: listField().nullish(),
    allow_ips: listField()
      .refine((text) => allowListLines(text).every(isAddressRange), {
        error: 'expected addresses and CIDRs, one a line',
      })
      .nullish(),
    group: groupField().nullish(),
    vendor_routes: listField().nullish(),
  },
  { error: 'expected an object with the fields of a token' },
)

/**
 * Makes a token with a generated key, which is told in full here and masked everywhere else. Refused where the user has
 * `max_user_tokens` already, or may not name the group.
 */
export async function createToken(
  { store, apiKeys, settings, nowMs }: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<TokenObject> {
  const input = readInput(INPUT, given)
  const { group, vendor_routes: vendorRoutes } = input
  const user = await findUser(store, input.user)
  if (!input.unlimited_quota) requireQuota('remain_quota', input.remain_quota, 0, settings())
  if (group) requireTokenGroup(settings(), user, group)
  if (vendorRoutes) requireVendorRoutes(settings(), user, vendorRoutes)
  const key = generateKey()
  const token = await store.write('createUserToken', {
    most: settings().options.maxUserTokens,
    token: {
      userId: user.id,
      name: input.name,
      key,
      status: TOKEN_STATUS.enabled,
      createdTime: Math.floor(nowMs() / 1000),
      expiredTime: input.expired_time,
      remainQuota: input.remain_quota,
      unlimitedQuota: input.unlimited_quota ?? false,
      modelLimitsEnabled: input.model_limits_enabled ?? false,
      modelLimits: input.model_limits?.trim() ?? '',
      allowIps: allowListLines(input.allow_ips ?? null).join('\n') || null,
      group: group ?? '',
      vendorRoutes: vendorRoutes?.trim() ?? '',
    },
  })
  apiKeys.forgetKey(key)
  return tokenObject(token, `sk-${key}`, nowMs())
}
