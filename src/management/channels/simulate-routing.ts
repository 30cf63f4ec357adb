import { CLIENT_PROTOCOLS } from '@sluice/wire/protocols'
import { z } from 'zod'
import type { Caller } from '../../accounts/authentication/caller.ts'
import { refuseUnusableKey, tokenStatusAt } from '../../domain/api-key.ts'
import { NO_OPERATOR_LIMITS } from '../../domain/usage-limits.ts'
import { NO_LIMIT } from '../../domain/rate-limit.ts'
import { TOKEN, TOKEN_STATUS } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import { simulatedRefusal, type Simulation } from '../../domain/simulation.ts'
import { GatewayError } from '../../errors.ts'
import { textField } from '../input-fields.ts'
import type { AdministrationServices } from '../services.ts'
import { CONDITIONS, healthOfThisNode } from './channel-health.ts'
import { CHANNEL_ID_SCHEMAS } from './channel-object.ts'

const tokens = z
  .int({ error: 'expected a number of tokens' })
  .min(0, { error: 'expected 0 or more' })
  .max(100_000_000, { error: 'expected at most 100000000' })

/**
 * Input that describes the call to simulate: the model, and either the API key or the group that calls it.
 */
export const simulationBody = z.object(
  {
    model: textField('expected the name of a model').min(1, { error: 'expected the name of a model' }),
    group: textField('expected the name of a group').nullish(),
    token_id: z.int({ error: 'expected the id of a key' }).positive().nullish(),
    protocol: z
      .enum(CLIENT_PROTOCOLS, {
        error: 'expected chat, messages, responses or gemini',
      })
      .default('chat'),
    without: z.array(CHANNEL_ID_SCHEMAS.id, { error: 'expected a list of ids' }).max(1000).nullish(),
    prompt_tokens: tokens.nullish(),
    max_tokens: tokens.nullish(),
  },
  { error: 'expected an object with a model' },
)

/** Result of a simulation: which channels the call would try, in which order. */
export const simulationSchema = z.object({
  refusal: z.object({ status: z.int(), code: z.string(), message: z.string() }).nullable(),
  group: z.string(),
  ratio: z.string(),
  hold: z.int().describe('Quota units'),
  route: z.array(
    z.object({
      model: z.string(),
      fallback: z.boolean(),
      priority: z.int(),
      channels: z.array(
        z.object({
          id: z.int(),
          name: z.string(),
          condition: z.enum(CONDITIONS),
          native: z.boolean(),
          share: z.number(),
          why_not: z
            .enum([
              'disabled',
              'resting',
              'drained',
              'ended',
              'no_key',
              'rate_limited',
              'protocol',
              'without',
            ])
            .nullable(),
        }),
      ),
    }),
  ),
})

const DEFAULT_TOKENS = 1000

/** Simulates a call. Throws `not_found` if the key does not exist. */
export async function simulateRouting(
  services: AdministrationServices,
  given: z.output<typeof simulationBody>,
  by: User,
): Promise<z.output<typeof simulationSchema>> {
  const { liveConfig, settings } = services
  const { items } = await healthOfThisNode(services, false)
  const isWithout = new Set(given.without)
  const byName = new Map(settings().channels.map((channel) => [channel.name, channel]))
  const listed = items.flatMap(({ id, name, condition }) => {
    const channel = byName.get(name) ?? liveConfig.storedChannel(name)
    return channel ? [{ id, name, condition, channel }] : []
  })
  const { caller, refusal } = await callerOf(services, given, by)
  const simulation = await services.simulate(caller, {
    isKey: Boolean(given.token_id),
    model: given.model,
    protocol: given.protocol,
    promptTokens: given.prompt_tokens ?? DEFAULT_TOKENS,
    maxTokens: given.max_tokens ?? undefined,
    without: new Set(listed.filter(({ id }) => isWithout.has(id)).map(({ channel }) => channel)),
    disabled: listed.filter(({ condition }) => condition === 'disabled').map(({ channel }) => channel),
  })
  const known = new Map(listed.map((one) => [one.channel.name, one]))
  return {
    ...simulation,
    refusal: refusal ?? simulation.refusal,
    route: simulation.route.map((step) => ({
      ...step,
      channels: step.channels.flatMap(({ channel, native, share, whyNot }) => {
        const one = known.get(channel.name)
        return one
          ? [{ id: one.id, name: one.name, condition: one.condition, native, share, why_not: whyNot }]
          : []
      }),
    })),
  }
}

/**
 * The caller of the simulated call: the key with its user, or a caller in the given group. `refusal` is the
 * error if the key cannot be used.
 */
async function callerOf(
  { store, nowMs }: Pick<AdministrationServices, 'store' | 'nowMs'>,
  { token_id: id, group }: z.output<typeof simulationBody>,
  by: User,
): Promise<{ readonly caller: Caller; readonly refusal?: Simulation['refusal'] }> {
  if (!id) {
    const token: Caller['token'] = {
      ...TOKEN.defaults,
      id: 0,
      user_id: by.id,
      name: '',
      group: '',
      status: TOKEN_STATUS.enabled,
      created_time: 0,
      remain_quota: 0,
      unlimited_quota: true,
      rateLimit: { ...NO_LIMIT, parallel: 0 },
      budget: undefined,
      operator_terms: NO_OPERATOR_LIMITS,
    }
    // The simulated user is put into the group, because users may always use their own group.
    return { caller: { token, user: { ...by, group: group || by.group } } }
  }
  const token = await store.read('tokenById', { tokenId: id })
  const user = token && (await store.read('userById', token.user_id))
  if (!token || !user) throw new GatewayError('not_found', `there is no key with the id ${id}`)
  const caller = { token, user }
  try {
    refuseUnusableKey(token, user, tokenStatusAt(token, token.remain_quota, nowMs()), 'call')
    return { caller }
  } catch (error) {
    return { caller, refusal: simulatedRefusal(error) }
  }
}
