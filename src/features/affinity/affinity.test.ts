import { describe, expect, test } from 'vitest'
import { scanObject } from '@sluice/wire/json/json-scan'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { Channel } from '../../domain/records/channel.ts'
import { LocalDigests } from '../../call/digests/digest-store.ts'
import type { Plans } from '../../call/plan.ts'
import type { AttemptRequest, AttemptTarget } from '../../call/request-stages.ts'
import { SessionAffinity } from './affinity.ts'
import { withCacheDiagnosisRequest } from './cache-diagnosis-request.ts'

const MINUTE_MS = 60_000
const KEYS = ['one', 'two', 'three'].map((value) => ({ value }))
const CHANNEL = { name: 'a', keys: KEYS.map(({ value }) => value), priority: 0 } as unknown as Channel
const OPTIONS = { affinity: { enabled: true, most: 100, cache_key: true } }

/** Calls of one session, with a clock that the test moves. */
class SessionCalls {
  nowMs = 0
  readonly #affinity = new SessionAffinity({
    store: new LocalDigests(() => this.nowMs),
    metrics: { add: () => {} },
    nowMs: () => this.nowMs,
  })

  /** Returns the key that a call would try first. */
  first({ user = 1, session = 's', model = 'm' } = {}): string | undefined {
    return this.#begin(user, session, model, false).order[0]?.value
  }

  /** A call that is answered by the second key or by the key `at`. */
  answer(usage: Partial<Usage>, { day = false, isReported = true, at = 1 } = {}): void {
    const { call, plan } = this.#begin(1, 's', 'm', day)
    const target = { channel: CHANNEL, key: KEYS[at] } as unknown as AttemptTarget
    call.attempted(plan, target)
    call.answered(plan, target, { ...NO_USAGE, ...usage }, isReported)
  }

  #begin(user: number, id: string, model: string, cachesForADay: boolean) {
    const request = {
      model,
      json: {
        scan: scanObject(Buffer.from(cachesForADay ? '{"prompt_cache_retention":"24h"}' : '{}')),
        dialect: { conversation: {} },
      },
    }
    const session = { tag: `${user} ${id}`, name: id, isNamed: true, hasCacheKey: false }
    const plans = [
      { request, settings: { options: OPTIONS }, channels: [{ channel: CHANNEL }] },
    ] as unknown as Plans
    const call = this.#affinity.of(user, session, plans)
    if (!call) throw new Error('the call has no affinity')
    const [plan] = call.arranged(plans) as Plans
    return { call, plan, order: call.ordered(plan, CHANNEL, KEYS) }
  }
}

describe('how long a session is bound', () => {
  test.each<[string, Partial<Usage>, boolean, number]>([
    ['a read', { cacheRead: 10 }, false, 5],
    ['a prompt of 1,024 tokens', { input: 1_024 }, false, 5],
    ['a write for 5 minutes', { cacheWrite5m: 1 }, false, 5],
    ['a write for 30 minutes', { cacheWrite30m: 1 }, false, 30],
    ['a write for an hour', { cacheWrite1h: 1, cacheWrite5m: 9 }, false, 60],
    ['a write for 12 hours', { cacheWrite12h: 1, cacheWrite30m: 9 }, false, 720],
    ['a read with retention of a day', { cacheRead: 10 }, true, 1_440],
    ['a first prompt with retention of a day', { input: 1_024 }, true, 1_440],
  ])('a session stays with its key for as long as the cache lives after %s', (_, usage, day, minutes) => {
    const calls = new SessionCalls()
    calls.answer(usage, { day })
    calls.nowMs = minutes * MINUTE_MS - 1_000
    expect(calls.first()).toBe('two')
    calls.nowMs = minutes * MINUTE_MS + 1_000
    expect(calls.first()).toBe('one')
  })

  test('a session stays with its upstream key for the longest cache lifetime that it wrote, counted from its last use', () => {
    const calls = new SessionCalls()
    calls.answer({ cacheWrite1h: 100 })
    calls.nowMs = 50 * MINUTE_MS
    calls.answer({ cacheRead: 100, cacheWrite5m: 10 })
    calls.nowMs = 109 * MINUTE_MS
    expect(calls.first()).toBe('two')
    calls.nowMs = 111 * MINUTE_MS
    expect(calls.first()).toBe('one')
  })

  test('an uncached prompt of 1,023 tokens does not bind its session to an upstream key', () => {
    const calls = new SessionCalls()
    calls.answer({ input: 1_023 })
    calls.answer({ input: 1_023 }, { day: true })
    expect(calls.first()).toBe('one')
  })

  test('a session bound to an upstream key stays bound after a small prompt, to the key that answered last', () => {
    const calls = new SessionCalls()
    calls.answer({ cacheRead: 1_024 })
    calls.answer({ input: 10 }, { at: 2 })
    expect(calls.first()).toBe('three')
  })
})

describe('the scope of a bound session', () => {
  test.each([{ user: 2 }, { session: 't' }, { model: 'n' }])(
    'the upstream key that a session is bound to is not preferred for another user, session or model: %o',
    (other) => {
      const calls = new SessionCalls()
      calls.answer({ cacheRead: 1_024 })
      expect(calls.first()).toBe('two')
      expect(calls.first(other)).toBe('one')
    },
  )
})

describe('the share of a key', () => {
  test('a session leaves a key with more than its share of calls after two answers without a cache read, not after one', () => {
    const calls = new SessionCalls()
    for (let n = 0; n < 20; n++) calls.answer({ cacheRead: 5_000 })
    calls.answer({ input: 5_000 })
    expect(calls.first()).toBe('two')
    calls.answer({ input: 5_000 })
    expect(calls.first()).toBe('one')
    calls.answer({ cacheRead: 5_000 })
    expect(calls.first()).toBe('two')
  })

  test('a session stays with its upstream key after answers whose provider reports no usage', () => {
    const calls = new SessionCalls()
    for (let n = 0; n < 20; n++) calls.answer({ input: 5_000 }, { isReported: false })
    expect(calls.first()).toBe('two')
  })

  test('a session does not leave an upstream key because of calls that are more than a minute old', () => {
    const calls = new SessionCalls()
    for (let n = 0; n < 20; n++) calls.answer({ input: 5_000 })
    expect(calls.first()).toBe('one')
    calls.nowMs = MINUTE_MS + 5_000
    expect(calls.first()).toBe('two')
  })
})

test.each(['/messages', '/responses'])(
  'a provider is asked why its cache was missed also for a converted request with more JSON values than one of a client: %s',
  (path) => {
    const body = Buffer.from(`{"input":[${Array.from({ length: 200_001 }, () => 0).join(',')}]}`)
    const request = { path, body, headers: [] } as unknown as AttemptRequest
    const { body: asking } = withCacheDiagnosisRequest(request, 'last')
    expect(Buffer.isBuffer(asking) && asking.includes('"last"')).toBe(true)
  },
)
