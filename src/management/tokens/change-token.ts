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
 * Changes the given fields of one of the user's tokens; running calls are not affected. A new quota is the
 * balance beyond the open holds. `given` is validated here.
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
