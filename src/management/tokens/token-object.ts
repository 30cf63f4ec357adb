import { z } from 'zod'
import { maskedKey, tokenStatusAt } from '../../domain/api-key.ts'
import { tokenVersion } from '../../domain/object-version.ts'
import { isSetByOperator } from '../../domain/usage-limits.ts'
import { fieldsWith } from '../../domain/records/record.ts'
import { TOKEN, type Token } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import type { Settings } from '../../domain/settings.ts'
import { TURN_BUDGET } from '../../limits/event-loop.ts'
import type { AccountName } from '../../store/bank.ts'
import type { TokenWithKey } from '../../store/operations/find-accounts.ts'
import type { TokenOfUser } from '../../store/operations/tokens-of-all.ts'
import { declareResponse, requestBodySchemas } from '../record-schemas.ts'
import {
  type BudgetUses,
  budgetUses,
  readHeldSums,
  usageLimitFields,
  usageLimitSchema,
  usageLimitsWithUse,
  type LimitedOwner,
} from '../usage-limits.ts'
import { GatewayError } from '../../errors.ts'
import { versionField } from '../expected-version.ts'
import { idFields } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { budgetsOf, isStoppedByBudget, remainingSpendOf, remainingSchema } from '../remaining-spend.ts'

/**
 * Limits that an operator set, and that the holder can only tighten. `remain_quota` is what is still left of
 * the quota.
 */
const operatorLimits = z.object({
  remain_quota: z.int().optional(),
  model_limits: z.string().optional(),
  allow_ips: z.string().optional(),
  expired_time: z.int().optional(),
  guards: z.array(z.string()).optional(),
  toolsets: z.array(z.string()).optional(),
  group: z.string().optional(),
  vendor_routes: z.string().optional(),
})

/**
 * The fields of a token that requests may set, of its holder or of an operator. A limit that a holder may only tighten is
 * also one of `src/domain/usage-limits.ts`.
 */
export const HOLDER_FIELDS = fieldsWith(TOKEN.fields, 'edit', 'holder')

const own = declareResponse(TOKEN.fields, 'holder')

/**
 * A token as responses show it; `docs/api.md: Token`. Its key is masked, except in the response to its
 * creation.
 */
export const tokenSchema = z.object({
  ...own.schema.shape,
  key: z.string(),
  held_quota: z.int().describe('quota units held for calls under way'),
  ...usageLimitSchema,
  ...remainingSchema,
  operator_limits: operatorLimits.optional(),
  version: z.string(),
  DeletedAt: z.string().nullable(),
})

/** A token as responses show it. */
export type TokenObject = z.output<typeof tokenSchema>

type Parts = Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>

/** A stored token as responses show it, with its current status. `key` is shown as it is given. */
export async function tokenObject(services: Parts, token: Token, key: string): Promise<TokenObject> {
  const surroundings = await surroundingsOf(services, [token])
  return shown(token, key, surroundings)
}

/** Stored tokens as responses show them, with their keys masked. */
export async function maskedTokens(services: Parts, tokens: readonly TokenWithKey[]): Promise<TokenObject[]> {
  if (tokens.length === 0) return []
  const surroundings = await surroundingsOf(
    services,
    tokens.map(({ token }) => token),
  )
  const objects: TokenObject[] = []
  // Each token may be converted in a later turn of the event loop, because computing the version of one with
  // long texts takes time.
  for (const { token, key } of tokens)
    objects.push(await TURN_BUDGET.work(() => shown(token, maskedKey(`sk-${key}`), surroundings)))
  return objects
}

/** A token in a list of the tokens of several users. */
export const tokenOfUserSchema = tokenSchema.extend({
  username: z.string(),
  stopped: z.boolean().describe('whether a budget refuses its calls'),
})

/** Stored tokens of several users as responses show them, with their keys masked. */
export async function tokensOfUsers(
  services: Parts,
  tokens: readonly TokenOfUser[],
): Promise<z.output<typeof tokenOfUserSchema>[]> {
  const stopped = new Set(
    await stoppedTokens(
      services,
      tokens.map(({ token }) => token),
    ),
  )
  const objects = await maskedTokens(services, tokens)
  return objects.map((object, index) => ({
    ...object,
    username: tokens[index]?.username ?? '',
    stopped: stopped.has(object.id),
  }))
}

/** A stored token as responses show it, with its key masked. */
export function maskedToken(services: Parts, { token, key }: TokenWithKey): Promise<TokenObject> {
  return tokenObject(services, token, maskedKey(`sk-${key}`))
}

/** What responses show of a token in addition to its own fields. */
interface Surroundings {
  readonly settings: Settings
  readonly users: ReadonlyMap<number, User>
  readonly uses: BudgetUses
  readonly held: ReadonlyMap<AccountName, number>
  readonly nowMs: number
}

async function surroundingsOf(services: Parts, tokens: readonly Token[]): Promise<Surroundings> {
  const { store } = services
  const settings = services.settings()
  const nowMs = services.nowMs()
  const userIds = [...new Set(tokens.map(({ user_id }) => user_id))]
  const found = await store.read('usersById', { userIds })
  const users = new Map(found.map((user) => [user.id, user]))
  const budgets = tokens.flatMap((token) => {
    const user = users.get(token.user_id)
    return user ? Object.values(budgetsOf(settings, user, token)) : [limitsOwner(token)]
  })
  const distinct = new Map(budgets.map((owned) => [owned.owner, owned]))
  const [uses, held] = await Promise.all([
    budgetUses(store, [...distinct.values()], nowMs),
    readHeldSums(
      store,
      tokens.map(({ id }) => `t:${id}` as const),
    ),
  ])
  return { settings, users, uses, held, nowMs }
}

/**
 * The ids of those tokens whose calls are refused because a budget is used up: their own, their user's or
 * their group's.
 */
export async function stoppedTokens(services: Parts, tokens: readonly Token[]): Promise<number[]> {
  const { settings, users, uses } = await surroundingsOf(services, tokens)
  return tokens
    .filter((token) => {
      const user = users.get(token.user_id)
      return user !== undefined && isStoppedByBudget(settings, uses, user, token)
    })
    .map(({ id }) => id)
}

function limitsOwner(token: Token): LimitedOwner {
  const { id, budget, rateLimit } = token
  return { owner: `t:${id}`, budget, rateLimit, isByOperator: isSetByOperator(token) }
}

function shown(token: Token, key: string, { settings, users, uses, held, nowMs }: Surroundings): TokenObject {
  const user = users.get(token.user_id)
  return {
    ...own.answer(token),
    key,
    status: tokenStatusAt(token, token.remain_quota, nowMs),
    held_quota: held.get(`t:${token.id}`) ?? 0,
    ...usageLimitsWithUse(limitsOwner(token), uses),
    ...(user ? remainingSpendOf(settings, uses, user, token) : { left: null, left_by: null }),
    ...operatorLimitsOf(token),
    version: tokenVersion(token),
    DeletedAt: token.deleted_time === null ? null : new Date(token.deleted_time * 1000).toISOString(),
  }
}

function operatorLimitsOf({ operator_terms, used_quota }: Token): Pick<TokenObject, 'operator_limits'> {
  const { quota, models, addresses, expires, guards, toolsets, group, routes } = operator_terms.grants ?? {}
  const given = {
    remain_quota: quota === undefined || quota === null ? undefined : Math.max(0, quota - used_quota),
    model_limits: models,
    allow_ips: addresses,
    expired_time: expires,
    guards: guards && [...guards],
    toolsets: toolsets && [...toolsets],
    group,
    vendor_routes: routes,
  }
  const set = Object.entries(given).filter(([, value]) => value !== undefined && value !== null)
  return set.length > 0 ? { operator_limits: Object.fromEntries(set) } : {}
}

/**
 * Input with the fields of a new token. An optional field that is null counts as missing. `docs/api.md: Token
 * management`.
 */
export const newTokenFields = z.object(
  { ...requestBodySchemas(HOLDER_FIELDS, 'new'), ...usageLimitFields },
  { error: 'expected an object with the fields of a token' },
)

/** The fields of a new token as clients send them. */
export type NewTokenFields = z.input<typeof newTokenFields>

export const TOKEN_ID_SCHEMAS = idFields('token', 'expected an array of ids of tokens')

/**
 * Input with a change of a token. Null counts as missing, except in `allow_ips`, where it removes the
 * restriction.
 */
export const changedTokenFields = z.object(
  {
    id: TOKEN_ID_SCHEMAS.id,
    ...requestBodySchemas(HOLDER_FIELDS, 'change'),
    ...usageLimitFields,
    version: versionField.nullish(),
  },
  { error: 'expected an object with the id of a token' },
)

/** The id of a key in the header `Gateway-Key`. */
export const keyHeaderSchema = z.object({ 'Gateway-Key': TOKEN_ID_SCHEMAS.written })

/**
 * Throws `not_found`. The message is the same whether the token does not exist or belongs to another user, so
 * that it reveals nothing.
 */
export function ownTokenNotFound(): never {
  throw new GatewayError('not_found', 'you have no token with this id')
}
