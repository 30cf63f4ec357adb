import { z } from 'zod'
import { maskedKey, statusAt } from '../../domain/api-key.ts'
import { tokenVersion } from '../../domain/object-version.ts'
import { isSetByOperator } from '../../domain/call-terms.ts'
import { TOKEN, type Token } from '../../domain/records/token.ts'
import { TURN_BUDGET } from '../../limits/event-loop.ts'
import type { KeyedToken } from '../../store/operations/find-accounts.ts'
import { answersOf, bodyShape } from '../record-schemas.ts'
import {
  termSchema,
  termsObject,
  termsObjects,
  termFields,
  type TermsObject,
  type TermsOwner,
} from '../call-terms.ts'
import { GatewayError } from '../../errors.ts'
import { versionField } from '../expected-version.ts'
import { idFields } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'

/** Limits that an operator gave and the holder can only tighten; of the quota, only what remains. */
const operatorLimits = z.object({
  remain_quota: z.int().optional(),
  model_limits: z.string().optional(),
  allow_ips: z.string().optional(),
  expired_time: z.int().optional(),
})

const own = answersOf(TOKEN.fields, 'holder')

/** A token in responses; `docs/api.md: Token`. Its key is masked, except in the response to its creation. */
export const tokenSchema = z.object({
  ...own.schema.shape,
  key: z.string(),
  ...termSchema,
  operator_limits: operatorLimits.optional(),
  version: z.string(),
  DeletedAt: z.string().nullable(),
})

/** A token in responses. */
export type TokenObject = z.output<typeof tokenSchema>

/** A stored token in responses, with its current status; `key` is shown as given. */
export async function tokenObject(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  token: Token,
  key: string,
): Promise<TokenObject> {
  const now = nowMs()
  return shown(token, key, await termsObject(store, termsOwner(token), now), now)
}

/** Stored tokens in responses, with their keys masked. */
export async function maskedTokens(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  tokens: readonly KeyedToken[],
): Promise<TokenObject[]> {
  const now = nowMs()
  const owners = tokens.map(({ token }) => termsOwner(token))
  const terms = await termsObjects(store, owners, now)
  const objects: TokenObject[] = []
  // Computing the version of a token with long texts takes time.
  for (const [index, { token, key }] of tokens.entries())
    objects.push(
      await TURN_BUDGET.work(() => shown(token, maskedKey(`sk-${key}`), terms[index] as TermsObject, now)),
    )
  return objects
}

/** A stored token in responses, with its key masked. */
export function maskedToken(
  parts: Pick<ManagementServices, 'store' | 'nowMs'>,
  { token, key }: KeyedToken,
): Promise<TokenObject> {
  return tokenObject(parts, token, maskedKey(`sk-${key}`))
}

function termsOwner(token: Token): TermsOwner {
  const { id, budget, rateLimit } = token
  return { owner: `t:${id}`, budget, rateLimit, isByOperator: isSetByOperator(token) }
}

function shown(token: Token, key: string, terms: TermsObject, nowMs: number): TokenObject {
  return {
    ...own.answer(token),
    key,
    status: statusAt(token, token.remain_quota, nowMs),
    ...terms,
    ...operatorLimitsOf(token),
    version: tokenVersion(token),
    DeletedAt: token.deleted_time === null ? null : new Date(token.deleted_time * 1000).toISOString(),
  }
}

function operatorLimitsOf({ operator_terms, used_quota }: Token): Pick<TokenObject, 'operator_limits'> {
  const { grants } = operator_terms
  if (!grants) return {}
  const { quota, models, addresses, expires } = grants
  return {
    operator_limits: {
      ...(quota !== undefined && { remain_quota: Math.max(0, quota - used_quota) }),
      ...(models !== undefined && { model_limits: models }),
      ...(addresses !== undefined && { allow_ips: addresses }),
      ...(expires !== undefined && { expired_time: expires }),
    },
  }
}

/** The fields of a new token; null in an optional field counts as absent. `docs/api.md: Token management`. */
export const newTokenFields = z.object(
  { ...bodyShape(TOKEN.fields, 'new'), ...termFields },
  { error: 'expected an object with the fields of a token' },
)

/** The fields of a new token as clients send them. */
export type NewTokenFields = z.input<typeof newTokenFields>

/** The id of a token. */
export const TOKEN_ID = idFields('token', 'expected an array of ids of tokens')

/** A change of a token; null counts as absent, except in `allow_ips`, where it is a value. */
export const changedTokenFields = z.object(
  { id: TOKEN_ID.id, ...bodyShape(TOKEN.fields, 'change'), ...termFields, version: versionField.nullish() },
  { error: 'expected an object with the id of a token' },
)

/** The id of a key in the header `Gateway-Key`. */
export const namedKey = z.object({ 'Gateway-Key': TOKEN_ID.written })

/** Throws `not_found`, with the same message whether the token does not exist or belongs to another user. */
export function noOwnToken(): never {
  throw new GatewayError('not_found', 'you have no token with this id')
}
