import { z } from 'zod'
import type { Channel } from '../../domain/records/channel.ts'
import type { ChannelHealth } from '../../upstreams/channel-health.ts'
import { KEPT_MINUTES } from '../../upstreams/channel-minutes.ts'
import type { AdministrationServices } from '../services.ts'
import { allChannels, type FoundChannel } from './channel-object.ts'

/** The nodes that are included. */
export const channelHealthQuery = z.object({
  nodes: z.enum(['this', 'all'], { error: 'expected this or all' }).optional(),
})

const milliseconds = z.int().nullable()

const item = z.object({
  id: z.int(),
  name: z.string(),
  state: z.enum(['works', 'failing', 'resting', 'probing', 'disabled']),
  failures: z.int(),
  rests_until: z.int().nullable(),
  last_error: z.object({ at: z.int(), cause: z.string() }).nullable(),
  keys: z.object({ total: z.int(), set_aside: z.int() }),
  minutes: z
    .array(z.object({ requests: z.int(), failed: z.int(), p50_ms: milliseconds, p95_ms: milliseconds }))
    .length(KEPT_MINUTES),
})

/** A channel that is failing, or whose circuit breaker is open or half-open, without its keys and minutes. */
export const troubledChannelSchema = item.omit({ keys: true, minutes: true, failures: true })

/** The channels as one node sees them; `at` is that node's time of day, in Unix seconds. */
const nodeHealth = z.object({ node: z.string(), at: z.int(), items: z.array(item) })

/** The same of this node, with those of the other nodes if they were requested. */
export const channelHealthSchema = nodeHealth.extend({ others: z.array(nodeHealth) })

type NodeHealth = z.output<typeof nodeHealth>

type Breaker = ReturnType<ChannelHealth['breakerOf']>

type HealthParts = Pick<AdministrationServices, 'store' | 'liveConfig' | 'channels' | 'node' | 'nowMs'>

/**
 * The channels in the order of lists, as this node sees them: everything but their names comes from memory.
 * `docs/administration.md: Channel health`.
 */
export async function ownHealth(parts: HealthParts): Promise<NodeHealth> {
  const items = (await allChannels(parts)).map((found) => itemOf(parts, found))
  return { node: parts.node, at: seconds(parts.nowMs()), items }
}

/** The channels that are failing, or whose circuit breaker is open or half-open, as this node sees them. */
export async function troubledChannels(
  parts: HealthParts & Pick<AdministrationServices, 'settings'>,
): Promise<z.output<typeof troubledChannelSchema>[]> {
  const readMs = performance.now()
  const isTroubled = ({ name }: Channel): boolean =>
    shownState(parts.channels.health.breakerOf(name, readMs)) !== 'works'
  // There is nearly always none, and then nothing has to be read.
  if (!parts.settings().channels.some(isTroubled)) return []
  const { items } = await ownHealth(parts)
  return items
    .filter(({ state }) => state !== 'works' && state !== 'disabled')
    .map(({ id, name, state, rests_until, last_error }) => ({ id, name, state, rests_until, last_error }))
}

/**
 * The channels as this node sees them; with `nodes: 'all'`, also as each other node that answers sees them.
 */
export async function channelHealth(
  parts: HealthParts & Pick<AdministrationServices, 'otherNodes'>,
  { nodes }: z.output<typeof channelHealthQuery>,
): Promise<z.output<typeof channelHealthSchema>> {
  const [own, reports = []] = await Promise.all([
    ownHealth(parts),
    nodes === 'all' ? parts.otherNodes?.others() : undefined,
  ])
  const others = reports.flatMap((report) => readReport(report) ?? [])
  return { ...own, others: others.toSorted((a, b) => (a.node < b.node ? -1 : 1)) }
}

// Nodes of other versions may send reports that this one cannot read.
function readReport(report: string): NodeHealth | undefined {
  try {
    return nodeHealth.safeParse(JSON.parse(report)).data
  } catch {
    return undefined
  }
}

function itemOf(
  { channels: { health, keyRings, minutes }, liveConfig, nowMs }: HealthParts,
  found: FoundChannel,
): NodeHealth['items'][number] {
  const { id, name } = found
  const isStored = 'stored' in found
  const { keys } = isStored ? found.stored : found.declared
  // Undefined for a disabled channel.
  const channel = isStored
    ? found.stored.status === 1
      ? liveConfig.storedChannel(name)
      : undefined
    : found.declared
  const readMs = performance.now()
  const breaker = health.breakerOf(name, readMs)
  const { failures, openForMs } = breaker
  const error = minutes.lastError(name)
  return {
    id,
    name,
    state: channel ? shownState(breaker) : 'disabled',
    failures,
    rests_until: openForMs > 0 ? seconds(nowMs() + openForMs + 999) : null,
    last_error: error ? { at: seconds(error.atMs), cause: error.cause } : null,
    keys: { total: keys.length, set_aside: channel ? keyRings.setAside(channel, readMs) : 0 },
    minutes: [...minutes.of(name)],
  }
}

/** The name of a circuit breaker's state in the API. */
function shownState({ state, failures }: Breaker): 'works' | 'failing' | 'resting' | 'probing' {
  if (state === 'closed') return failures === 0 ? 'works' : 'failing'
  return state === 'open' ? 'resting' : 'probing'
}

function seconds(unixMs: number): number {
  return Math.floor(unixMs / 1000)
}
