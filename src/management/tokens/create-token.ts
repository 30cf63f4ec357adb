import { z } from 'zod'
import { TOKEN, TOKEN_STATUS } from '../../domain/records/token.ts'
import type { Settings } from '../../domain/settings.ts'
import { withoutThinkingSuffix } from '@sluice/wire/messages'
import { generateKey } from '../../store/secrets.ts'
import { operatorLimitsOfNewToken } from '../../store/usage-limit-columns.ts'
import { type Actor, maySetOperatorLimits, OPERATOR } from '../authority.ts'
import { usageLimitChanges } from '../usage-limits.ts'
import type { ManagementServices } from '../services.ts'
import { readInput, requireQuota, userField } from '../input-fields.ts'
import { storedFields } from '../record-schemas.ts'
import { findUser } from '../users/list-users.ts'
import { requireGroups, requireGuards, requireToolsets } from '../users/user-object.ts'
import { HOLDER_FIELDS, newTokenFields, type TokenObject, tokenObject } from './token-object.ts'

const INPUT = newTokenFields.extend({ user: userField })

/** Creates a token, as an operator. */
export async function createToken(
  services: ManagementServices,
  given: z.input<typeof INPUT>,
): Promise<TokenObject> {
  return createTokenAs(services, readInput(INPUT, given), OPERATOR)
}

/**
 * Creates a token with a generated key, which only this response shows. Limits that an operator sets cannot
 * be loosened by the token's holder. Throws if the user already has `max_user_tokens` tokens, or may not use
 * the group.
 */
export async function createTokenAs(
  services: ManagementServices,
  input: z.output<typeof INPUT>,
  by: Actor,
): Promise<TokenObject> {
  const { store, apiKeys, settings, nowMs } = services
  const user = await findUser(store, input.user)
  const { name, expired_time, remain_quota } = input
  if (!input.unlimited_quota) requireQuota('remain_quota', remain_quota, 0, settings())
  const limits = usageLimitChanges(input, undefined, settings())
  const fields = {
    ...TOKEN.defaults,
    ...storedFields(HOLDER_FIELDS, input),
    name,
    expired_time,
    remain_quota,
  }
  requireGroups(settings(), user, fields)
  requireGuards(settings(), fields.guards)
  requireToolsets(settings(), fields.toolsets)
  const key = generateKey()
  const token = await store.write('createUserToken', {
    maxTokens: settings().options.max_user_tokens,
    token: {
      ...fields,
      ...limits,
      user_id: user.id,
      key,
      status: TOKEN_STATUS.enabled,
      created_time: Math.floor(nowMs() / 1000),
      ...(maySetOperatorLimits(by, user.id) && { operator_terms: operatorLimitsOfNewToken(limits, fields) }),
    },
  })
  apiKeys.forgetKey(key)
  return tokenObject(services, token, `sk-${key}`)
}

const WARNINGS_INPUT = z.object({ user: userField, name: z.string(), models: z.array(z.string()) })

/**
 * Warnings about a token that is valid but may be a mistake: its user has another token of the same name, or
 * no channel serves a model to which it is limited.
 */
export async function tokenWarnings(
  { store, settings }: ManagementServices,
  given: z.input<typeof WARNINGS_INPUT>,
): Promise<string[]> {
  const { user: idOrName, name, models } = readInput(WARNINGS_INPUT, given)
  const user = await findUser(store, idOrName)
  const namesakes = (await store.read('listTokensWithKeys', { userId: user.id })).filter(
    ({ token }) => token.name === name,
  )
  const served = servedModels(settings())
  const unknown = models.filter(
    (model) => !served.has(model) && !served.has(withoutThinkingSuffix(model) ?? model),
  )
  return [
    ...namesakes.map(
      ({ token: { id } }) =>
        `${user.username} has a key named ${JSON.stringify(name)} already, with the id ${id}`,
    ),
    ...unknown.map((model) => `no channel serves a model named ${JSON.stringify(model)}`),
  ]
}

function servedModels({ channels }: Settings): ReadonlySet<string> {
  return new Set(channels.flatMap(({ models }) => models))
}
