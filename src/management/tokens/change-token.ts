import { requireGroups } from '../users/require-group.ts'
import { findUser } from '../users/find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { maxQuota } from '../quota-bound.ts'
import { readInput } from '../read-input.ts'
import { changedTokenFields, storedFields } from './token-fields.ts'
import { noOwnToken, tokenInput } from './token-id.ts'
import { maskedToken, type TokenObject } from './token-object.ts'

const INPUT = changedTokenFields.extend(tokenInput.shape)

/**
 * Writes those fields of one of the user's tokens that are given; the next call counts by them, calls under
 * way go on. A quota that is set is what is left apart from what running calls hold. `given` is looked at
 * here, wherever it comes from.
 */
export async function changeToken(parts: ManagementParts, given: unknown): Promise<TokenObject> {
  const { store, ledger, apiKeys, settings, nowMs } = parts
  const { user: userId, id: tokenId, ...input } = readInput(INPUT, given)
  const user = await findUser(store, userId)
  const fields = storedFields(input)
  requireGroups(settings(), user, fields)
  const change = { tokenId, userId, fields, maxQuota: maxQuota(settings()), nowMs: nowMs() }
  const token = (await ledger.changeToken(change)) ?? noOwnToken()
  apiKeys.forget(tokenId)
  return maskedToken(token, nowMs())
}
