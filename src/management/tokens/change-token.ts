import type { z } from 'zod'
import type { TermChanges } from '../../domain/call-terms.ts'
import { TOKEN } from '../../domain/records/token.ts'
import { type Actor, isOperator } from '../authority.ts'
import { requireGroups } from '../users/require-group.ts'
import { findUser } from '../users/find-user.ts'
import { withPresent } from '../changed-meanwhile.ts'
import { termChanges, type termFields } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { maxQuota } from '../quota-bound.ts'
import { storedFields } from '../record-schemas.ts'
import type { changedTokenFields } from './token-fields.ts'
import { noOwnToken } from './token-id.ts'
import { maskedToken, type TokenObject } from './token-object.ts'

/** Change of a token of a user, who is given by id. */
export type TokenInput = z.output<typeof changedTokenFields> & { readonly user: number }

/**
 * Changes the given fields of one of the user's tokens; running calls are not affected. A new quota is the
 * balance beyond the open holds. What an operator changes is a ceiling for the holder of the token; one that
 * loosens it is refused with `operator_limit`.
 */
export async function changeToken(
  parts: ManagementParts,
  { user: userId, id: tokenId, version, ...input }: TokenInput,
  by: Actor,
): Promise<TokenObject> {
  const { store, ledger, apiKeys, settings, nowMs } = parts
  const user = await findUser(store, userId)
  const fields = {
    ...storedFields(TOKEN.fields, input),
    ...(await changedTerms(parts, { tokenId, userId }, input)),
  }
  requireGroups(settings(), user, fields)
  const change = {
    tokenId,
    userId,
    fields,
    isByOperator: isOperator(by, userId),
    version: version ?? undefined,
    maxQuota: maxQuota(settings()),
    nowMs: nowMs(),
  }
  const token =
    (await withPresent(
      () => ledger.changeToken(change),
      async () => {
        const present = await store.read('keyedToken', { tokenId, userId })
        return present ? maskedToken(parts, present) : undefined
      },
    )) ?? noOwnToken()
  apiKeys.forget(tokenId)
  return maskedToken(parts, token)
}

// A new amount keeps the period, and a new period the amount.
async function changedTerms(
  { store, settings }: ManagementParts,
  ids: { readonly tokenId: number; readonly userId: number },
  input: Pick<TokenInput, keyof typeof termFields>,
): Promise<TermChanges> {
  const isBudget = input.budget !== undefined || input.budget_period !== undefined
  const before = isBudget ? await store.read('keyedToken', ids) : undefined
  return termChanges(input, before?.token.budget, settings())
}
