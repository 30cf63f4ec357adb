import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { asGatewayError, GatewayError } from '../../errors.ts'
import type { Actor } from '../authority.ts'
import type { AdministrationParts } from '../parts.ts'
import { declaredId } from './channel-object.ts'
import { CHANNEL_ID, type FoundChannel } from './find-channel.ts'
import { testFound, testResult } from './test-channel.ts'
import { cheapTest } from './tested-model.ts'

/** Maximum number of concurrent tests. */
const MAX_PARALLEL = 8
/** Timeout of all tests together, in milliseconds. */
const LIMIT_MS = 60_000

/** The channels to test; all of them without `ids`. */
export const testAllBody = z.object(
  { ids: z.array(CHANNEL_ID.id, { error: 'expected a list of ids' }).nullish() },
  { error: 'expected an object' },
)

/** The results, in the order of lists. `success` is null for channels that were not tested in time. */
export const testAllResult = z.array(
  testResult
    .omit({ costs: true })
    .extend({ id: CHANNEL_ID.id, name: z.string(), success: z.boolean().nullable(), endpoint: z.string() }),
)

type Parts = Pick<AdministrationParts, 'store' | 'liveConfig' | 'upstreams' | 'nowMs' | 'settings'>
type Outcome = Omit<z.output<typeof testAllResult>[number], 'id' | 'name'>

/** A channel to test. */
interface Listed {
  readonly id: number
  readonly name: string
  readonly found: FoundChannel
}

const UNREACHED: Outcome = { success: null, message: '', time: 0, model: '', endpoint: '' }

/**
 * Tests channels, eight at a time, for up to a minute. A channel whose test would be charged as a picture or
 * speech is tested by listing its upstream's models. Throws `not_found` for an unknown id.
 */
export async function testAllChannels(
  parts: Parts,
  { ids }: z.output<typeof testAllBody>,
  by: Actor,
): Promise<z.output<typeof testAllResult>> {
  const listed = await channelsOf(parts, ids ?? undefined)
  const outcomes = listed.map(() => UNREACHED)
  const waiting = listed.entries()
  let isOver = false
  const work = async (): Promise<void> => {
    for (const [at, channel] of waiting) {
      if (isOver) return
      outcomes[at] = await outcomeOf(parts, channel, by)
    }
  }
  const late = sleep(LIMIT_MS, undefined, { ref: false })
  await Promise.race([late, Promise.all(Array.from({ length: MAX_PARALLEL }, work))])
  isOver = true
  return listed.map(({ id, name }, at) => ({ id, name, ...(outcomes[at] ?? UNREACHED) }))
}

async function channelsOf(
  { store, liveConfig }: Parts,
  ids: readonly number[] | undefined,
): Promise<Listed[]> {
  const { channels } = await store.read('storedConfiguration')
  const all: Listed[] = [
    ...channels.map((stored) => ({ id: stored.id, name: stored.name, found: { stored } })),
    ...liveConfig.declared.channels.map((declared) => ({
      id: declaredId(declared.name),
      name: declared.name,
      found: { declared },
    })),
  ]
  const unknown = ids?.find((id) => !all.some((channel) => channel.id === id))
  if (unknown !== undefined) throw new GatewayError('not_found', `there is no channel with the id ${unknown}`)
  return ids ? all.filter(({ id }) => ids.includes(id)) : all
}

/** Tests one of them; a channel that cannot be tested counts as failed. */
async function outcomeOf(parts: Parts, { id, found }: Listed, by: Actor): Promise<Outcome> {
  try {
    const { costs: _, ...outcome } = await testFound(parts, { id, found, choose: cheapTest }, by)
    return outcome
  } catch (error) {
    const known = asGatewayError(error)
    if (!known) throw error
    return { ...UNREACHED, success: false, message: known.message }
  }
}
