import { z } from 'zod'
import { CHANNEL_CAUSES, type ChannelCause, channelCauseOf } from '../../domain/channel-cause.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Rest } from '../../upstreams/account-rests.ts'
import type { ChannelHealth } from '../../upstreams/channel-health.ts'
import { type ChannelMinutes, RECORDED_MINUTES } from '../../upstreams/channel-minutes.ts'
import type { AdministrationServices } from '../services.ts'
import { keyLimitsSchema, keyLimitsObject } from './key-limits.ts'
import { allChannels, type FoundChannel, listAllChannels } from './channel-object.ts'
import { isTestCostly } from './test-cost.ts'

/** Which nodes to report (this one or all), and whether to report every minute of the last hour. */
export const channelHealthQuery = z.object({
  nodes: z.enum(['this', 'all'], { error: 'expected this or all' }).optional(),
  minutes: z
    .enum(['0', '60'], { error: 'expected 0 (sums of the last hour) or 60' })
    .optional()
    .describe('`0` leaves out the minutes'),
})

/** All conditions in which a channel can be. */
export const CONDITIONS = [
  'untried',
  'works',
  'degraded',
  'failing',
  'resting',
  'probing',
  'drained',
  'disabled',
] as const

/** Condition of a channel. `docs/administration.md: Channel health`. */
export type Condition = (typeof CONDITIONS)[number]

/**
 * A channel counts as degraded if at least this many of its attempts in the last 15 minutes failed, and at
 * least the share `DEGRADED_SHARE` of all its attempts.
 */
const DEGRADED_ATTEMPTS = 5
const DEGRADED_SHARE = 0.2

const milliseconds = z.int().nullable()

const item = z.object({
  id: z.int(),
  name: z.string(),
  state: z.enum(['works', 'failing', 'resting', 'probing', 'disabled']),
  condition: z.enum(CONDITIONS),
  tried: z
    .boolean()
    .default(false)
    .describe('Whether an attempt is under way that decides whether its cooldown is over'),
  cause: z
    .enum(CHANNEL_CAUSES)
    .nullable()
    .default(null)
    .describe('Why it fails or rests; null while it does neither'),
  failures: z.int(),
  rests_until: z.int().nullable(),
  last_error: z.object({ at: z.int(), cause: z.string() }).nullable(),
  keys: z.object({
    total: z.int(),
    set_aside: z.int(),
    limits: z
      .array(keyLimitsSchema)
      .default([])
      .describe('What the provider stated, one entry for each key in their order'),
  }),
  minutes: z
    .array(z.object({ requests: z.int(), failed: z.int(), p50_ms: milliseconds, p95_ms: milliseconds }))
    .length(RECORDED_MINUTES)
    .optional()
    .describe('Absent with `minutes=0`'),
  hour: z
    .object({ requests: z.int(), failed: z.int(), p50_ms: milliseconds })
    .optional()
    .describe('The sums of the last hour, with `minutes=0`'),
})

/** A channel in trouble, with numbers of its calls in the last 15 minutes. */
export const incidentSchema = z.object({
  channel_id: z.int(),
  channel: z.string(),
  condition: z.enum(CONDITIONS),
  tried: z.boolean(),
  since: z.int().describe('Unix seconds'),
  calls: z.int(),
  failed: z.int(),
  rescued: z.int().describe('Calls with a failed attempt here that another channel answered'),
  lost: z.int().describe('Calls with a failed attempt here that failed'),
  cause: z.string(),
  test_costs: z.boolean().describe('Whether the provider bills a test, as a picture or speech'),
})

/**
 * A channel that is failing, or whose circuit breaker is open or half-open, without details of its keys and
 * of each minute.
 */
export const troubledChannelSchema = item.omit({ keys: true, minutes: true, hour: true, failures: true })

/** The channels' health as one node sees it. `at` is the time on that node, in Unix seconds. */
const nodeHealth = z.object({ node: z.string(), at: z.int(), items: z.array(item) })

/**
 * The channels' health as this node sees it; in `others`, as the other nodes see it, if they were requested.
 */
export const channelHealthSchema = nodeHealth.extend({ others: z.array(nodeHealth) })

type NodeHealth = z.output<typeof nodeHealth>

type Breaker = ReturnType<ChannelHealth['breakerOf']>

type HealthServices = Pick<AdministrationServices, 'store' | 'liveConfig' | 'channels' | 'node' | 'nowMs'>

/**
 * The health of all channels as this node sees it, in the order of channel lists. Only the names are read
 * from the database. `docs/administration.md: Channel health`.
 */
export async function healthOfThisNode(services: HealthServices, withMinutes = true): Promise<NodeHealth> {
  const items = (await allChannels(services)).map((found) => itemOf(services, found, withMinutes))
  return { node: services.node, at: seconds(services.nowMs()), items }
}

/** The channels that are failing, or whose circuit breaker is open or half-open, as this node sees them. */
export async function troubledChannels(
  services: HealthServices & Pick<AdministrationServices, 'settings'>,
): Promise<z.output<typeof troubledChannelSchema>[]> {
  const readMs = performance.now()
  const { health, keyRings } = services.channels
  const isTroubled = (channel: Channel): boolean =>
    shownState(health.breakerOf(channel.name, readMs)) !== 'works' ||
    keyRings.rests.faultOf(channel) !== undefined
  // Usually no channel is in trouble, so that the database need not be read.
  if (!services.settings().channels.some(isTroubled)) return []
  const { items } = await healthOfThisNode(services)
  return items
    .filter(({ state }) => state !== 'works' && state !== 'disabled')
    .map(({ id, name, state, condition, tried, cause, rests_until, last_error }) => ({
      id,
      name,
      state,
      condition,
      tried,
      cause,
      rests_until,
      last_error,
    }))
}

const IN_TROUBLE: ReadonlySet<Condition> = new Set(['degraded', 'failing', 'resting', 'probing'])

/** The channels that are in trouble and had calls in the last 15 minutes, as this node sees them. */
export async function incidents(
  services: HealthServices & Pick<AdministrationServices, 'settings'>,
): Promise<z.output<typeof incidentSchema>[]> {
  const { minutes } = services.channels
  // Usually no call has failed recently, so that the database need not be read.
  if (!services.settings().channels.some(({ name }) => minutes.recent(name).failed > 0)) return []
  const costs = new Map((await listAllChannels(services)).map((one) => [one.id, isTestCostly(services, one)]))
  const { items } = await healthOfThisNode(services, false)
  return items.flatMap(({ id, name, condition, tried, last_error }) => {
    const { requests, failed, rescued, lost, failingSinceMs } = minutes.recent(name)
    if (requests === 0 || !IN_TROUBLE.has(condition)) return []
    const since = seconds(failingSinceMs)
    const cause = last_error?.cause ?? ''
    const test_costs = costs.get(id) ?? false
    return [
      {
        channel_id: id,
        channel: name,
        condition,
        tried,
        since,
        calls: requests,
        failed,
        rescued,
        lost,
        cause,
        test_costs,
      },
    ]
  })
}

/**
 * The health of all channels as this node sees it; with `nodes: 'all'`, also as each other node that answers
 * sees it.
 */
export async function channelHealth(
  services: HealthServices & Pick<AdministrationServices, 'otherNodes'>,
  { nodes, minutes }: z.output<typeof channelHealthQuery>,
): Promise<z.output<typeof channelHealthSchema>> {
  const [own, reports = []] = await Promise.all([
    healthOfThisNode(services, minutes !== '0'),
    nodes === 'all' ? services.otherNodes?.others() : undefined,
  ])
  const others = reports.flatMap((report) => readReport(report) ?? [])
  return { ...own, others: others.toSorted((a, b) => (a.node < b.node ? -1 : 1)) }
}

// Other nodes may run another version, whose reports this one cannot read.
function readReport(report: string): NodeHealth | undefined {
  try {
    return nodeHealth.safeParse(JSON.parse(report)).data
  } catch {
    return undefined
  }
}

function itemOf(
  services: HealthServices,
  found: FoundChannel,
  withMinutes: boolean,
): NodeHealth['items'][number] {
  const { health, keyRings, minutes } = services.channels
  const { liveConfig, nowMs } = services
  const { id, name } = found
  const isStored = 'stored' in found
  const { keys } = isStored ? found.stored : found.declared
  // The channel with its current settings; undefined if it is disabled.
  const channel = isStored
    ? found.stored.status === 1
      ? liveConfig.storedChannel(name)
      : undefined
    : found.declared
  const readMs = performance.now()
  const breaker = health.breakerOf(name, readMs)
  const { failures, openForMs } = breaker
  const error = minutes.lastError(name)
  const fault = channel && keyRings.rests.faultOf(channel)
  const state = channel ? (fault ? 'failing' : shownState(breaker)) : 'disabled'
  const condition = channel
    ? conditionOf(name, breaker, minutes, liveConfig.drained.has(id), fault !== undefined)
    : 'disabled'
  return {
    id,
    name,
    state,
    condition,
    tried: breaker.isTried,
    cause: causeOf(fault, IN_TROUBLE.has(condition) ? error?.cause : undefined),
    failures,
    rests_until: openForMs > 0 ? seconds(nowMs() + openForMs + 999) : null,
    last_error: error ? { at: seconds(error.atMs), cause: error.cause } : null,
    keys: {
      total: keys.length,
      set_aside: channel ? keyRings.rests.countResting(channel, readMs) : 0,
      limits: keys.map(keyLimitsObject(services, name)),
    },
    ...(withMinutes ? { minutes: [...minutes.of(name)] } : { hour: minutes.hour(name) }),
  }
}

function conditionOf(
  name: string,
  breaker: Breaker,
  minutes: ChannelMinutes,
  isDrained: boolean,
  hasNoKey: boolean,
): Exclude<Condition, 'disabled'> {
  if (isDrained) return 'drained'
  if (hasNoKey) return 'failing'
  const state = shownState(breaker)
  if (state === 'resting' || state === 'probing') return state
  const { record, hasFailedTest } = minutes.recordOf(name)
  if (breaker.failures > 1 || hasFailedTest) return 'failing'
  const { requests, failed } = minutes.recent(name).sinceRecovery
  if (failed >= DEGRADED_ATTEMPTS && failed >= requests * DEGRADED_SHARE) return 'degraded'
  if (state === 'failing') return 'failing'
  return record === 'answered' ? 'works' : record === 'untried' ? 'untried' : 'failing'
}

/** Why a channel fails: the fault of its keys, otherwise its last failure, in the words of the metrics. */
function causeOf(fault: Rest | undefined, words: string | undefined): ChannelCause | null {
  if (fault && fault.kind !== 'limited') return fault.kind
  return words === undefined ? null : channelCauseOf(words)
}

/** The states and causes of all channels, for commands; empty if no gateway runs that could know them. */
export async function listChannelStates(
  services: Partial<Pick<HealthServices, 'channels'>> & Omit<HealthServices, 'channels' | 'node'>,
): Promise<{ readonly name: string; readonly state: string; readonly cause: ChannelCause | null }[]> {
  const { channels } = services
  if (!channels) return []
  const { items } = await healthOfThisNode({ ...services, channels, node: '' }, false)
  return items.map(({ name, state, condition, cause }) => ({
    name,
    // The condition also counts failed tests, and failures before the start.
    state: state === 'works' && cause !== null ? condition : state,
    cause,
  }))
}

/** The API's name for the state of a circuit breaker. */
function shownState({ state, failures }: Breaker): 'works' | 'failing' | 'resting' | 'probing' {
  if (state === 'closed') return failures === 0 ? 'works' : 'failing'
  return state === 'open' ? 'resting' : 'probing'
}

function seconds(unixMs: number): number {
  return Math.floor(unixMs / 1000)
}
