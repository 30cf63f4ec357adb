import { z } from 'zod'
import type { UsageLimitChanges } from '../domain/usage-limits.ts'
import { isAddressRange } from '../domain/ip-allow-list.ts'
import { MAX_QUOTA_USD } from '../domain/options.ts'
import type { CallRateLimit } from '../domain/rate-limit.ts'
import type { Group } from '../domain/records/group.ts'
import { TOKEN, type DeclaredToken } from '../domain/records/token.ts'
import { USER, USER_STATUS, type DeclaredUser } from '../domain/records/user.ts'
import { ROUTE_MAP_EXPECTATION, parseVendorRoutes } from '../domain/vendor-routes.ts'
import {
  credentialSchema,
  schemasOfDeclaredFields,
  type Field,
  integerSchema,
  listSchema,
  oneOfSchema,
  InvalidValue,
  secretSchema,
  sectionSchema,
  textSchema,
} from './fields.ts'
import {
  budgetFields,
  declaredBudget,
  DEFAULT_GROUP,
  groupNameSchema,
  requireBudgetWithPeriod,
  suggestGroup,
} from './groups.ts'
import { contentTermsSchema, declaredContentLog } from './content-log.ts'
import { callRateLimitSchema } from './rate-limits.ts'
import { childOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

const STATUS = Object.values(USER_STATUS)

/**
 * A key consists of letters and digits after an optional `sk-`. It must not contain hyphens, because a key is
 * looked up only by the text before the first hyphen.
 */
const key = secretSchema('sk- and then letters and digits only', (given) => {
  const bare = given.replace(/^(?:sk-)+/, '')
  return /^[A-Za-z0-9]+$/.test(bare) ? bare : undefined
})

const addresses = textSchema('addresses and CIDRs, one a line', (given) => {
  const lines = given.split('\n').map((line) => line.trim())
  const wrong = lines.find((line) => line !== '' && !isAddressRange(line))
  if (wrong !== undefined)
    return new InvalidValue(`addresses and CIDRs, one a line (${wrong} is neither)`, { quotes: true })
  return lines.filter((line) => line !== '').join('\n')
})

/**
 * Accepts the name of a group that a token may use: an open group, or the group of the token's user, which an
 * empty name also means.
 */
function tokenGroup(
  groups: ReadonlyMap<string, Group>,
  own: () => string,
): (given: string) => string | InvalidValue {
  return (given) => {
    if (given === '' || given === own()) return given
    const group = groups.get(given)
    if (!group) return new InvalidValue(`a group that groups declares${suggestGroup(given, groups.keys())}`)
    return group.open ? given : new InvalidValue(`an open group, or the user's own (${given} is closed)`)
  }
}

function token(
  groups: ReadonlyMap<string, Group>,
  own: () => string,
  maxQuota: number,
): Field<DeclaredToken> {
  const group = tokenGroup(groups, own)
  const { name, ...derived } = schemasOfDeclaredFields(TOKEN.fields)
  return sectionSchema({
    name,
    key: key.optional(),
    status: oneOfSchema(STATUS).optional(),
    ...derived,
    remain_quota: integerSchema(0, maxQuota).optional(),
    allow_ips: addresses.optional(),
    group: textSchema('the name of a group', group).default(''),
    vendor_routes: textSchema('a JSON map from vendors to groups, in quotes', vendorRoutes(group)).default(
      '',
    ),
    ...budgetFields(maxQuota),
    rate_limit: callRateLimitSchema,
    content_log: contentTermsSchema,
  })
    .superRefine(requireBudgetWithPeriod)
    .superRefine((given, ctx) => {
      if (given.remain_quota !== undefined || given.unlimited_quota) return
      const message = 'expected a quota (or unlimited_quota: true), found nothing'
      ctx.addIssue({ code: 'custom', path: ['remain_quota'], message })
    })
    .transform(
      ({ budget, budget_period, rate_limit, content_log, ...given }): DeclaredToken => ({
        ...given,
        ...declaredContentLog(content_log),
        remain_quota: given.remain_quota ?? 0,
        allow_ips: given.allow_ips || null,
        limits: declaredLimits({ budget, budget_period, rate_limit }),
      }),
    )
}

function declaredLimits(
  given: Parameters<typeof declaredBudget>[0] & { readonly rate_limit?: CallRateLimit | undefined },
): UsageLimitChanges | undefined {
  const limits = { budget: declaredBudget(given), rateLimit: given.rate_limit }
  return limits.budget === undefined && limits.rateLimit === undefined ? undefined : limits
}

/** Schema of an entry of the section `users`: `docs/configuration.md: Users`. */
export function userSchema(groups: ReadonlyMap<string, Group>, quotaPerUnit: number): Field<DeclaredUser> {
  const maxQuota = MAX_QUOTA_USD * quotaPerUnit
  // The group of the user that is being read. It is a shared variable, because a separate schema per user
  // would take most of the time of a start with thousands of users.
  let own = DEFAULT_GROUP
  const seed = sectionSchema({
    id: integerSchema(1).optional(),
    ...schemasOfDeclaredFields(USER.fields),
    status: oneOfSchema(STATUS).optional(),
    group: groupNameSchema(new Set(groups.keys())).default(DEFAULT_GROUP),
    quota: integerSchema(0, maxQuota).default(0),
    access_token: credentialSchema('a token: printable characters without spaces').optional(),
    tokens: listSchema(
      token(groups, () => own, maxQuota),
      'a list of tokens',
    ),
    ...budgetFields(maxQuota),
    rate_limit: callRateLimitSchema,
    content_log: contentTermsSchema,
  })
    .superRefine(requireBudgetWithPeriod)
    .transform(
      ({ budget, budget_period, rate_limit, content_log, ...given }): DeclaredUser => ({
        ...given,
        ...declaredContentLog(content_log),
        limits: declaredLimits({ budget, budget_period, rate_limit }),
      }),
    )
  return z.preprocess((given) => {
    const group = childOfNode(given as YamlNode, 'group')
    own = group instanceof YamlScalar ? String(group.value) : DEFAULT_GROUP
    return given
  }, seed)
}

/**
 * Reads a token's `vendor_routes`, a JSON map from vendor to group; `docs/api.md: Token management`. `accept`
 * returns a `InvalidValue` for an invalid group.
 */
function vendorRoutes(
  accept: (group: string) => string | InvalidValue,
): (given: string) => string | InvalidValue {
  return (given) => {
    const routes = parseVendorRoutes(given)
    if (!routes) return new InvalidValue(ROUTE_MAP_EXPECTATION)
    for (const group of routes.values()) {
      const accepted = accept(group)
      if (typeof accepted !== 'string') return accepted
    }
    return given.trim() === '' ? '' : given
  }
}
