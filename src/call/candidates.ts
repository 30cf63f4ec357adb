import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { KeyRings, UpstreamKey } from '../upstreams/key-ring.ts'
import type { MissingModels } from '../upstreams/missing-models.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { CallLimits } from './call-limits.ts'
import type { Call } from './call.ts'
import type { ChannelPlan, Plan } from './request-stages.ts'

/** A channel to try, and its keys in the order in which they are tried. */
export interface Candidate {
  readonly plan: ChannelPlan
  readonly keys: readonly UpstreamKey[]
  /** Whether a feature has excluded all keys. Such a channel comes after others of its priority. */
  readonly isSpent?: true
}

/** Services that are needed to find the channels and keys of a call. */
export interface CandidateServices {
  readonly keyRings: KeyRings
  readonly health: ChannelHealth
  readonly missing: MissingModels
  readonly ends: ModelRetirements
  readonly limits: CallLimits
}

/**
 * The channels and keys that may serve a call with one model, at most `options.retries` further channels, and as
 * many further keys of each. Channels that are drained, no longer serve the model, have an open circuit breaker
 * or recently lacked the model are skipped, and so are accounts that rest. If nothing is left, all are tried
 * anyway, those at fault last, unless `maySkip` allows skipping the model. `docs/operations.md: Channels that fail`.
 */
export function candidatesOf(
  { health, keyRings, limits, missing, ends: shutdowns }: CandidateServices,
  { features }: Pick<Call, 'features'>,
  plan: Plan,
  maySkip: boolean,
): readonly Candidate[] {
  const {
    channels,
    request: { model },
    settings,
  } = plan
  const most = 1 + settings.options.retries
  const nowMs = performance.now()
  const ends = shutdowns.of(settings)
  const today = ends.isEmpty ? 0 : Date.now()
  const all: Candidate[] = []
  const good: Candidate[] = []
  for (const candidate of channels) {
    const { channel } = candidate
    if (limits.waitMs(channel) > 0) continue
    const keys = keysFor(candidate, keyRings.rotated(channel))
    if (!maySkip) all.push({ plan: candidate, keys })
    if (channel.isDrained || health.isOpen(channel, nowMs)) continue
    if (ends.hasEnded(channel, model, today)) continue
    if (missing.isMissing(channel, model, nowMs)) continue
    const upstreamModel = upstreamModelOf(candidate, model)
    const usable = keyRings.rests.isEmpty
      ? keys
      : keys.filter(({ value }) => !keyRings.rests.isResting(channel.name, value, upstreamModel, nowMs))
    if (usable.length === 0) continue
    const { keys: ordered, isSpent } = features.keys(plan, candidate, upstreamModel, usable)
    good.push({ plan: candidate, keys: atMost(most, ordered), ...(isSpent && { isSpent }) })
  }
  if (good.some(({ isSpent }) => isSpent)) good.sort(spentLast)
  if (good.length > 0 || maySkip) return atMost(most, good)
  return lastResort({ keyRings }, all, model, nowMs, most)
}

/** Orders channels by priority; those of one priority that are spent come last. */
function spentLast(a: Candidate, b: Candidate): number {
  return b.plan.channel.priority - a.plan.channel.priority || Number(a.isSpent ?? 0) - Number(b.isSpent ?? 0)
}

/** All accounts, those that are at fault after those that may only have reached a limit. */
function lastResort(
  { keyRings: { rests } }: Pick<CandidateServices, 'keyRings'>,
  all: readonly Candidate[],
  model: string,
  nowMs: number,
  most: number,
): readonly Candidate[] {
  const isAtFault = ({ channel }: ChannelPlan, { value }: UpstreamKey, upstreamModel: string): boolean =>
    (rests.restOf(channel.name, value, upstreamModel, nowMs)?.kind ?? 'limited') !== 'limited'
  const ordered = all.map(({ plan, keys }) => {
    const upstreamModel = upstreamModelOf(plan, model)
    const [first = [], last = []] = [false, true].map((atFault) =>
      keys.filter((key) => isAtFault(plan, key, upstreamModel) === atFault),
    )
    return {
      candidate: { plan, keys: atMost(most, [...first, ...last]) },
      first,
    }
  })
  return ordered
    .toSorted((a, b) => Number(a.first.length === 0) - Number(b.first.length === 0))
    .map(({ candidate }) => candidate)
    .slice(0, most)
}

/**
 * Milliseconds until the first account that could serve a call may be called again, of those that have only
 * reached a limit; undefined if there is none.
 */
export function shortestRestMs(
  { keyRings }: Pick<CandidateServices, 'keyRings'>,
  plans: readonly Plan[],
): number | undefined {
  const nowMs = performance.now()
  let shortest: number | undefined
  for (const { channels, request, reason } of plans) {
    if (reason !== undefined) continue
    for (const candidate of channels) {
      const { channel } = candidate
      const model = upstreamModelOf(candidate, request.model)
      for (const key of keysFor(candidate, keyRings.keysOf(channel))) {
        const rest = keyRings.rests.restOf(channel.name, key.value, model, nowMs)
        if (rest?.kind === 'limited' && rest.endMs - nowMs < (shortest ?? Number.POSITIVE_INFINITY))
          shortest = rest.endMs - nowMs
      }
    }
  }
  return shortest
}

/** The upstream's name of the model that a channel would be sent. */
function upstreamModelOf({ channel, tools }: ChannelPlan, model: string): string {
  return tools?.model ?? channel.model_mapping.get(model) ?? model
}

/**
 * The keys of the provider account to which the request is bound. If the request is not bound to an account,
 * or the account's key no longer exists: all keys.
 */
function keysFor(plan: ChannelPlan, keys: readonly UpstreamKey[]): readonly UpstreamKey[] {
  if (!plan.isOfKey) return keys
  const own = keys.filter((key) => plan.isOfKey?.(key))
  return own.length > 0 ? own : keys
}

/** The first elements of a list; the list itself if it has no more. */
function atMost<T>(most: number, list: readonly T[]): readonly T[] {
  return list.length > most ? list.slice(0, most) : list
}
