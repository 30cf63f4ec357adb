import { NO_USAGE } from '@sluice/wire/usage'
import type { CacheBreak } from '../../src/domain/cache-break.ts'
import { type MadeKey, modelsOf, pick, type PlannedCall, type Random } from './world-calls.ts'
import type { WorldModel } from './world-catalogue.ts'

/** A call of a session. */
export interface Turn {
  readonly startedMs: number
  readonly made: MadeKey
  readonly model: WorldModel
  readonly planned: PlannedCall
}

/** Models whose providers charge for writing to a cache. */
const WRITES = 'messages'
/** Milliseconds after which a cache that is not used is gone. */
const LIFETIME_MS = 300_000
const MAX_TURNS = 40
/** How often the cache of a turn breaks, and why; what is too late breaks in any case. */
const BREAK_RATE = 0.05
const REASONS: readonly { readonly reason: CacheBreak; readonly weight: number }[] = [
  { reason: 'model_changed', weight: 1 },
  { reason: 'channel_moved', weight: 2 },
  { reason: 'key_moved', weight: 1 },
  { reason: 'tools_changed', weight: 3 },
  { reason: 'system_changed', weight: 4 },
  { reason: 'messages_changed', weight: 6 },
  { reason: 'provider', weight: 3 },
]

/**
 * Plans the calls of sessions in which an agent works: prompts that grow, seconds apart, of which the beginning
 * is read from the cache unless it breaks. The turns of a session follow each other; sessions are in no order.
 */
export function planSessions(
  keys: readonly MadeKey[],
  turns: number,
  {
    startOf,
    nowMs,
    random,
  }: { readonly startOf: () => number; readonly nowMs: number; readonly random: Random },
): readonly Turn[] {
  const agents = keys.filter(({ key }) => key.models?.some((name) => name.includes('opus')))
  const planned: Turn[] = []
  while (planned.length < turns) {
    const length = 3 + Math.floor(random() ** 2 * MAX_TURNS)
    const session = [...planSession(pick(agents, random), startOf(), { length, random })]
    planned.push(...session.filter(({ startedMs }) => startedMs < nowMs).slice(0, turns - planned.length))
  }
  return planned
}

function* planSession(
  made: MadeKey,
  firstMs: number,
  { length, random }: { readonly length: number; readonly random: Random },
): Generator<Turn> {
  let model = pick(modelsOf(made.key.models), random)
  const session = hexDigits(random)
  let startedMs = firstMs
  let kept = 0
  let prompt = 6_000 + Math.floor(random() * 14_000)
  for (let turn = 0; turn < length; turn += 1) {
    const pauseMs = random() < 0.04 ? LIFETIME_MS * (1 + 8 * random()) : 4_000 + 60_000 * random() ** 2
    startedMs += turn === 0 ? 0 : Math.round(pauseMs)
    const reason = kept === 0 ? '' : breakOf(pauseMs, model, random)
    if (reason === 'model_changed') model = pick(modelsOf(made.key.models), random)
    const read = reason === '' ? kept : Math.floor(kept * 0.3 * (random() < 0.5 ? 0 : random()))
    const isWritten = model.kind === WRITES
    const rest = isWritten ? Math.floor(random() * 200) : prompt - read
    const output = 80 + Math.floor(random() * 900)
    const firstByteMs = model.firstMs + Math.floor(random() * 900)
    yield {
      startedMs,
      made,
      model,
      planned: {
        usage: {
          ...NO_USAGE,
          input: rest,
          cacheRead: read,
          cacheWrite5m: isWritten ? prompt - read - rest : 0,
          output,
          reasoning: Math.floor(output * model.reasoning),
        },
        tier: 'standard',
        reason: 'complete',
        delivered: true,
        duration_ms: firstByteMs + Math.round((output / 100) * model.tokenMs),
        first_byte_ms: firstByteMs,
        stream: true,
        channel: reason === 'channel_moved' ? (model.channels[1] ?? model.channels[0]) : model.channels[0],
        attempts: undefined,
        session,
        cache_break: reason,
        cache_verdict: isWritten && reason !== '' ? verdictOf(reason, kept) : '',
      },
    }
    kept = prompt - (isWritten ? rest : 0)
    prompt += output + 200 + Math.floor(random() * 2_400)
  }
}

/** Why the cache of a turn breaks; empty if it does not. */
function breakOf(pauseMs: number, { channels }: WorldModel, random: Random): CacheBreak | '' {
  if (pauseMs > LIFETIME_MS) return 'lifetime_passed'
  if (random() >= BREAK_RATE) return ''
  const possible = REASONS.filter(({ reason }) => reason !== 'channel_moved' || channels.length > 1)
  return pick(possible, random).reason
}

/** What Anthropic reports about such a break; nothing about those that it does not see. */
function verdictOf(reason: CacheBreak, missed: number): string {
  if (!/^(?:model|tools|system|messages)_changed$/.test(reason)) return ''
  return JSON.stringify({ cache_miss_reason: { type: reason, cache_missed_input_tokens: missed } })
}

function hexDigits(random: Random): string {
  return Array.from({ length: 16 }, () => Math.floor(random() * 16).toString(16)).join('')
}
