import type { z } from 'zod'
import { operatorTermsOfNew } from '../../store/term-columns.ts'
import { TOKEN, TOKEN_STATUS } from '../../domain/records/token.ts'
import { generateKey } from '../../store/generate-key.ts'
import { type Actor, isOperator, OPERATOR } from '../authority.ts'
import { requireGroups } from '../users/require-group.ts'
import { findUser } from '../users/find-user.ts'
import { termChanges } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { requireQuota } from '../quota-bound.ts'
import { readInput, userField } from '../read-input.ts'
import { storedFields } from '../record-schemas.ts'
import { newTokenFields } from './token-fields.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

const INPUT = newTokenFields.extend({ user: userField })

/** Creates a token on behalf of the operator. */
export async function createToken(
  parts: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<TokenObject> {
  return makeToken(parts, readInput(INPUT, given), OPERATOR)
}

/**
 * Creates a token with a generated key, which is unmasked in this response alone. The terms that an operator
 * gives are a ceiling for its holder. Throws where the user has `max_user_tokens` already, or may not name
 * the group.
 */
export async function makeToken(
  parts: ManagementParts,
  input: z.output<typeof INPUT>,
  by: Actor,
): Promise<TokenObject> {
  const { store, apiKeys, settings, nowMs } = parts
  const user = await findUser(store, input.user)
  const { name, expired_time, remain_quota } = input
  if (!input.unlimited_quota) requireQuota('remain_quota', remain_quota, 0, settings())
  const terms = termChanges(input, undefined, settings())
  const fields = { ...TOKEN.defaults, ...storedFields(TOKEN.fields, input), name, expired_time, remain_quota }
  requireGroups(settings(), user, fields)
  const key = generateKey()
  const token = await store.write('createUserToken', {
    maxTokens: settings().options.max_user_tokens,
    token: {
      ...fields,
      ...terms,
      user_id: user.id,
      key,
      status: TOKEN_STATUS.enabled,
      created_time: Math.floor(nowMs() / 1000),
      ...(isOperator(by, user.id) && { operator_terms: operatorTermsOfNew(terms, fields) }),
    },
  })
  apiKeys.forgetKey(key)
  return tokenObject(parts, token, `sk-${key}`)
}
