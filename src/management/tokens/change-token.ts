import { z } from 'zod'
import { tokenVersion } from '../../domain/object-version.ts'
import { TOKEN_STATUS } from '../../domain/records/token.ts'
import { generateKey } from '../../store/secrets.ts'
import { type Actor, maySetOperatorLimits, OPERATOR } from '../authority.ts'
import { keepsPartOfBudget, usageLimitChanges } from '../usage-limits.ts'
import { addCurrentObject, repeatIfChanged } from '../expected-version.ts'
import { MAX_DELETED_AT_ONCE, maxQuota, readInput, requireFewIds } from '../input-fields.ts'
import type { ManagementServices } from '../services.ts'
import { storedFields } from '../record-schemas.ts'
import { findUser } from '../users/list-users.ts'
import { requireGroups, requireGuards, requireToolsets } from '../users/user-object.ts'
import { anyTokenInput, findToken, tokenNotFound } from './list-tokens.ts'
import {
  HOLDER_FIELDS,
  changedTokenFields,
  maskedToken,
  ownTokenNotFound,
  TOKEN_ID_SCHEMAS,
  type TokenObject,
  tokenObject,
} from './token-object.ts'

/** A change of a user's token. `user` is the user's id. */
type TokenInput = z.output<typeof changedTokenFields> & { readonly user: number }

/**
 * Changes the given fields of a token that belongs to the user. Running calls are not affected. A new quota
 * does not include what running calls have reserved. A limit that an operator sets cannot be loosened by the
 * token's holder, who gets the error `operator_limit`.
 */
export function changeToken(
  services: ManagementServices,
  input: TokenInput,
  by: Actor,
): Promise<TokenObject> {
  return repeatIfChanged(input.version, () => changePresentToken(services, input, by))
}

async function changePresentToken(
  services: ManagementServices,
  { user: userId, id: tokenId, version, ...input }: TokenInput,
  by: Actor,
): Promise<TokenObject> {
  const { store, ledger, apiKeys, settings, nowMs } = services
  const user = await findUser(store, userId)
  const before = keepsPartOfBudget(input)
    ? await store.read('findTokenWithKey', { tokenId, userId })
    : undefined
  const fields = {
    ...storedFields(HOLDER_FIELDS, input),
    ...usageLimitChanges(input, before?.token.budget, settings()),
  }
  requireGroups(settings(), user, fields, await teamGroupOf(services, fields.group, tokenId))
  requireGuards(settings(), fields.guards)
  requireToolsets(settings(), fields.toolsets)
  const change = {
    tokenId,
    userId,
    fields,
    isByOperator: maySetOperatorLimits(by, userId),
    version: version ?? (before ? tokenVersion(before.token) : undefined),
    maxQuota: maxQuota(settings()),
    nowMs: nowMs(),
  }
  const token =
    (await addCurrentObject(
      () => ledger.changeToken(change),
      async () => {
        const present = await store.read('findTokenWithKey', { tokenId, userId })
        return present ? maskedToken(services, present) : undefined
      },
    )) ?? ownTokenNotFound()
  apiKeys.forget(tokenId)
  return maskedToken(services, token)
}

// An imported key keeps the closed group that it came with, also if a form sends it back.
async function teamGroupOf(
  { store }: ManagementServices,
  group: string | undefined,
  tokenId: number,
): Promise<string> {
  return group ? ((await store.read('tokenById', { tokenId }))?.team_group ?? '') : ''
}

/** Changes any user's token, as an operator. */
export async function changeAnyToken(
  services: ManagementServices,
  given: z.input<typeof changedTokenFields>,
): Promise<TokenObject> {
  const { id, ...fields } = readInput(changedTokenFields, given)
  const { user_id: user } = await findToken(services.store, { id })
  return changeToken(services, { user, id, ...fields }, OPERATOR)
}

/** The statuses to which a token can be set. */
const switchedStatusField = z.literal([TOKEN_STATUS.enabled, TOKEN_STATUS.disabled], {
  error: 'expected 1 (enabled) or 2 (disabled)',
})

/** Input with the fields of a token to change, or with the status that it should get, which is changed alone. */
export const tokenChangeOrStatus = changedTokenFields
  .extend({ status: switchedStatusField.nullish() })
  .refine(
    ({ status, ...fields }) => {
      const given = Object.entries(fields).filter(
        ([name, value]) => name !== 'id' && value !== undefined && (value !== null || name === 'allow_ips'),
      )
      return given.length > 0 !== Boolean(status)
    },
    {
      path: ['status'],
      error:
        'expected 1 (enabled) or 2 (disabled) without other fields, or fields to change without a status',
    },
  )

/** Changes fields of a user's token, or its status. */
export function changeTokenOrStatus(
  services: ManagementServices,
  { status, ...change }: z.output<typeof tokenChangeOrStatus> & { readonly user: number },
  by: Actor,
): Promise<TokenObject> {
  return status ? enableOrDisableToken(services, { ...change, status }) : changeToken(services, change, by)
}

/** Input with a token and the status that it should get. */
export const tokenStatusInput = z.object(
  { id: TOKEN_ID_SCHEMAS.id, status: switchedStatusField },
  { error: 'expected an object with the id of a token and a status' },
)

/**
 * Changes only the status of a token that belongs to the user. Running calls are not affected. Throws
 * `invalid_request` if an expired or exhausted token is to be enabled. `docs/api.md: States and transitions`.
 */
export async function enableOrDisableToken(
  services: ManagementServices,
  { user: userId, id: tokenId, status }: z.output<typeof tokenStatusInput> & { readonly user: number },
): Promise<TokenObject> {
  const { store, apiKeys, nowMs } = services
  const token =
    (await store.write('enableOrDisableToken', { tokenId, userId, status, nowMs: nowMs() })) ??
    ownTokenNotFound()
  apiKeys.forget(tokenId)
  return maskedToken(services, token)
}

/**
 * Gives a token of the user a new key, which only this response shows. The old key is refused from now on;
 * quota, limits and running calls are not affected.
 */
export async function rotateTokenOf(
  services: ManagementServices,
  { user: userId, id: tokenId }: { readonly user: number; readonly id: number },
): Promise<TokenObject> {
  const { store, apiKeys } = services
  const key = generateKey()
  const token = (await store.write('rotateToken', { tokenId, userId, key })) ?? ownTokenNotFound()
  apiKeys.forget(tokenId)
  apiKeys.forgetKey(key)
  return tokenObject(services, token, `sk-${key}`)
}

/** Gives any user's token a new key. */
export async function rotateToken(
  services: ManagementServices,
  given: z.input<typeof anyTokenInput>,
): Promise<TokenObject> {
  const { id, user_id: user } = await findToken(services.store, given)
  return rotateTokenOf(services, { user, id })
}

/** Disables any user's token. Its key is refused from now on; running calls continue. */
export async function disableToken(
  services: ManagementServices,
  given: z.input<typeof anyTokenInput>,
): Promise<TokenObject> {
  const { id, user_id: user } = await findToken(services.store, given)
  return enableOrDisableToken(services, { user, id, status: TOKEN_STATUS.disabled })
}

/** Enables any user's token. Throws `invalid_request` if it is expired or exhausted. */
export async function enableToken(
  services: ManagementServices,
  given: z.input<typeof anyTokenInput>,
): Promise<TokenObject> {
  const { id, user_id: user } = await findToken(services.store, given)
  return enableOrDisableToken(services, { user, id, status: TOKEN_STATUS.enabled })
}

/**
 * Deletes those of the given tokens that belong to the user, and returns their number. Their keys are refused
 * from now on; running calls continue. Throws `batch_too_many` for more than 1,000 ids.
 */
export async function deleteTokens(
  { store, apiKeys, nowMs }: ManagementServices,
  { user: userId, ids: tokenIds }: { readonly user: number; readonly ids: readonly number[] },
): Promise<number> {
  requireFewIds(tokenIds, MAX_DELETED_AT_ONCE, 'tokens are deleted')
  const nowSeconds = Math.floor(nowMs() / 1000)
  const deleted = await store.write('deleteTokens', { userId, tokenIds, nowSeconds })
  apiKeys.forget(new Set(deleted))
  return deleted.length
}

/** Deletes any user's token. Its key is refused from now on; running calls continue. */
export async function deleteToken(
  services: ManagementServices,
  given: z.input<typeof anyTokenInput>,
): Promise<{ readonly id: number; readonly name: string }> {
  const { id, user_id: user, name } = await findToken(services.store, given)
  if ((await deleteTokens(services, { user, ids: [id] })) === 0) tokenNotFound(id)
  return { id, name }
}
