import type { z } from 'zod'
import { operatorTermsOfNew } from '../../store/term-columns.ts'
import { TOKEN_STATUS } from '../../domain/token.ts'
import { generateKey } from '../../store/generate-key.ts'
import { type Actor, isOperator, OPERATOR } from '../authority.ts'
import { requireGroups } from '../users/require-group.ts'
import { findUser } from '../users/find-user.ts'
import { termChanges } from '../call-terms.ts'
import type { ManagementParts } from '../parts.ts'
import { requireQuota } from '../quota-bound.ts'
import { readInput, userField } from '../read-input.ts'
import { newTokenFields, storedFields } from './token-fields.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

const INPUT = newTokenFields.extend({ user: userField })

/** Creates a token on behalf of the operator. */
export function createToken(parts: ManagementParts, given: z.input<typeof INPUT>): Promise<TokenObject> {
  return makeToken(parts, given, OPERATOR)
}

/**
 * Creates a token with a generated key, which is unmasked in this response alone. The terms that an operator
 * gives are a ceiling for its holder. Throws where the user has `max_user_tokens` already, or may not name
 * the group.
 */
export async function makeToken(
  parts: ManagementParts,
  given: z.input<typeof INPUT>,
  by: Actor,
): Promise<TokenObject> {
  const { store, apiKeys, settings, nowMs } = parts
  const input = readInput(INPUT, given)
  const user = await findUser(store, input.user)
  if (!input.unlimited_quota) requireQuota('remain_quota', input.remain_quota, 0, settings())
  const terms = termChanges(input, undefined, settings())
  const fields = { ...storedFields(input), ...terms }
  requireGroups(settings(), user, fields)
  const key = generateKey()
  const grants = {
    ...DEFAULTS,
    ...fields,
    remain_quota: input.remain_quota,
    expired_time: input.expired_time,
  }
  const token = await store.write('createUserToken', {
    maxTokens: settings().options.maxUserTokens,
    token: {
      userId: user.id,
      key,
      status: TOKEN_STATUS.enabled,
      created_time: Math.floor(nowMs() / 1000),
      ...grants,
      ...(isOperator(by, user.id) && { operator_terms: operatorTermsOfNew(terms, grants) }),
      name: input.name,
    },
  })
  apiKeys.forgetKey(key)
  return tokenObject(parts, token, `sk-${key}`)
}

const DEFAULTS = {
  unlimited_quota: false,
  model_limits_enabled: false,
  model_limits: '',
  allow_ips: null,
  group: '',
  vendor_routes: '',
} as const
