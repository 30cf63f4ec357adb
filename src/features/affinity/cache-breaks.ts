import { createSecretKey, type KeyObject } from 'node:crypto'
import { type ConversationFingerprint, conversationFingerprint } from '@sluice/wire/conversation-fingerprint'
import { type CacheDiagnosis, responseIdForDiagnosis } from '@sluice/wire/cache-diagnosis'
import type { Usage } from '@sluice/wire/usage'
import type { CacheBreak } from '../../domain/cache-break.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Plan, AttemptTarget } from '../../call/request-stages.ts'
import {
  cachesForADay,
  LONGEST_LIFETIME_INDEX,
  CACHE_LIFETIMES_MS,
  numberOfChannelKey,
  longestWrittenLifetime,
} from './affinity.ts'
import type { PreviousCall, PreviousCalls } from './previous-calls.ts'

/** Services that are needed to find why calls miss prompt caches. */
export interface CacheBreaksServices {
  readonly previous: PreviousCalls
  /** Secret key of the digests: 32 bytes. */
  readonly key: Buffer
  readonly metrics: Pick<Metrics, 'add'>
}

/** The services, with the key in the form that HMACs take. */
interface BreakServices extends CacheBreaksServices {
  readonly digestKey: KeyObject
}

/** Finds why calls of sessions miss prompt caches. `docs/caches.md: Breaks`. */
export class CacheBreaks {
  readonly #services: BreakServices

  constructor(services: CacheBreaksServices) {
    this.#services = { ...services, digestKey: createSecretKey(services.key) }
  }

  /** Begins to compare a call with the previous one of its session; undefined if the call has no session. */
  of(userId: number, session: string, startedMs: number): CallCacheBreaks | undefined {
    return session === '' ? undefined : new CallCacheBreaks(this.#services, userId, session, startedMs)
  }
}

/** Facts about an answer, and what it states about the prompt cache. */
export interface AnswerWithCacheFacts {
  readonly plan: Plan
  readonly target: AttemptTarget
  readonly usage: Usage
  readonly diagnosis: CacheDiagnosis | undefined
}

/** Compares one call with the previous one of its session. */
export class CallCacheBreaks {
  readonly #services: BreakServices
  readonly #userId: number
  readonly #session: string
  readonly #startedMs: number
  readonly #found: ReturnType<PreviousCalls['find']>

  constructor(services: BreakServices, userId: number, session: string, startedMs: number) {
    this.#services = services
    this.#userId = userId
    this.#session = session
    this.#startedMs = startedMs
    this.#found = services.previous.find(userId, session)
  }

  /** The provider's id of the previous answer, if it came from this channel; otherwise empty. */
  answerIdAt(channel: string): string | Promise<string> {
    const idOf = (found: PreviousCall | undefined): string =>
      found?.channel === channel ? found.answerId : ''
    return this.#found instanceof Promise ? this.#found.then(idOf) : idOf(this.#found)
  }

  /**
   * Remembers an answer whose usage the provider reported, for the next call of the session. Returns why the
   * answer read nothing or too little from the cache; empty if it read enough or nothing was cached. Returns
   * a promise only if the previous call must be looked up in another process.
   */
  answered(answer: AnswerWithCacheFacts): CacheBreak | '' | Promise<CacheBreak | ''> {
    return this.#found instanceof Promise
      ? this.#found.then((previous) => this.#compare(answer, previous))
      : this.#compare(answer, this.#found)
  }

  #compare(answer: AnswerWithCacheFacts, found: PreviousCall | undefined): CacheBreak | '' {
    const { plan, target, usage, diagnosis } = answer
    const atMs = this.#startedMs
    const previous = found && atMs - found.atMs < lifetimeOf(found.longest) ? found : undefined
    const isForADay = cachesForADay(plan.request)
    const cached = cachedTokens(usage, isForADay, previous)
    const isBroken = previous !== undefined && 2 * usage.cacheRead < sumOf(previous.cached)
    const isCached = sumOf(cached) > 0
    const answerId = target.channel.cache_diagnostics ? responseIdForDiagnosis(diagnosis) : ''
    if (!isCached && !previous && answerId === '') return ''
    const { json } = plan.request
    const form = json?.dialect.conversation
    const print =
      json && form && (isCached || isBroken)
        ? conversationFingerprint(json.scan, form, this.#services.digestKey)
        : undefined
    const isWhole = !json || form?.isUnforeseeable?.(json.scan) !== true
    const now: PreviousCall = {
      atMs,
      channel: target.channel.name,
      place: numberOfChannelKey(target.channel, target.key.value),
      model: `${target.request.upstreamModel}${plan.request.requested?.serviceTier === 'fast' ? ' fast' : ''}`,
      tools: print?.tools() ?? '',
      system: print?.system() ?? '',
      messages: print && isWhole ? print.messages(print.turns) : '',
      turns: print && isWhole ? print.turns : -1,
      longest: Math.max(previous?.longest ?? 0, longestWrittenLifetime(usage, isForADay)),
      cached,
      answerId,
      isSure: this.#services.previous.isComplete,
    }
    this.#services.previous.remember(this.#userId, this.#session, now, plan.settings.options.affinity.most)
    // Another node may have served a call in between, and then the reason would be wrong.
    if (!isBroken || !previous.isSure || !now.isSure) return ''
    const reason = reasonOf(previous, now, print)
    this.#services.metrics.add('cacheBreaks', 1, reason)
    return reason
  }
}

/** Returns why the prompt cache was missed: the first reason that applies. */
function reasonOf(
  before: PreviousCall,
  now: PreviousCall,
  print: ConversationFingerprint | undefined,
): CacheBreak {
  if (now.channel !== before.channel) return 'channel_moved'
  if (now.place !== before.place) return 'key_moved'
  if (now.model !== before.model) return 'model_changed'
  if (now.tools !== before.tools) return 'tools_changed'
  if (now.system !== before.system) return 'system_changed'
  if (print && haveMessagesChanged(before, now, print)) return 'messages_changed'
  const ageMs = now.atMs - before.atMs
  const alive = before.cached.filter((_, lifetime) => lifetimeOf(lifetime) > ageMs)
  return 2 * sumOf(alive) < sumOf(before.cached) ? 'lifetime_passed' : 'provider'
}

function haveMessagesChanged(
  before: PreviousCall,
  now: PreviousCall,
  print: ConversationFingerprint,
): boolean {
  if (before.turns < 0 || now.turns < 0) return false
  return print.messages(before.turns) !== before.messages
}

/**
 * Tokens that an answer read from or wrote to caches, by index of the lifetime. Read tokens get the lifetimes
 * with which the previous call had cached them, longest first, because longer-lived parts come first in the
 * prompt.
 */
function cachedTokens(usage: Usage, cachesForADay: boolean, previous: PreviousCall | undefined): number[] {
  const { cacheWrite5m, cacheWrite30m, cacheWrite1h, cacheWrite12h } = usage
  const tokens = [cacheWrite5m, cacheWrite30m, cacheWrite1h, cacheWrite12h, 0]
  const before = previous?.cached ?? []
  let left = usage.cacheRead
  for (let lifetime = LONGEST_LIFETIME_INDEX; lifetime > 0; lifetime--) {
    const read = Math.min(left, before[lifetime] ?? 0)
    tokens[lifetime]! += read
    left -= read
  }
  tokens[0]! += left
  return cachesForADay ? [0, 0, 0, 0, sumOf(tokens)] : tokens
}

const lifetimeOf = (index: number): number => CACHE_LIFETIMES_MS[index] ?? 0

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0)
