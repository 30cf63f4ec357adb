import { parseArgs } from 'node:util'
import { MESSAGES_COMPARISON_RULES } from '@sluice/wire/messages'
import { scanObject } from '@sluice/wire/json/json-scan'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import { SessionAffinity } from '../../src/features/affinity/affinity.ts'
import { CacheBreaks } from '../../src/features/affinity/cache-breaks.ts'
import { LocalPreviousCalls } from '../../src/features/affinity/previous-calls.ts'
import { type CallSession, sessionFinder, sessionInRow, Sessions } from '../../src/call/session.ts'
import { LocalDigests } from '../../src/call/digests/digest-store.ts'
import type { Plans } from '../../src/call/plan.ts'
import type { Plan, AttemptTarget } from '../../src/call/request-stages.ts'
import { type Client, sessionTurns } from '../money/cache-sessions.ts'

/**
 * Measures what a call of a session costs beyond that of other calls: naming the session, keeping it with one of three
 * keys, and comparing it with the previous call. `--check` fails if affinity exceeds its limit, which is 3 % of a call
 * of 100 µs.
 */
const LIMIT_MICROS = 3
const CALLS = 20_000
const ROUNDS = 15
const SESSIONS = 500
const TURNS = 12
const { values: options } = parseArgs({ options: { check: { type: 'boolean', default: false } } })

const key = Buffer.alloc(32, 7)
const metrics = { add: () => {} }
const channel = { name: 'c', keys: ['one', 'two', 'three'], priority: 0, cache_diagnostics: false }
const keys = channel.keys.map((value) => ({ value }))
const target = { channel, key: keys[1], request: { upstreamModel: 'm' } } as unknown as AttemptTarget
const affinityOptions = { affinity: { enabled: true, most: 100_000, cache_key: true } }
const CACHED: Usage = { ...NO_USAGE, input: 500, cacheRead: 20_000, cacheWrite5m: 500, output: 200 }
const PLAIN: Usage = { ...NO_USAGE, input: 500, output: 200 }

interface Prepared {
  readonly plan: Plan
  readonly session: CallSession | undefined
  readonly tag: string
}

/** Calls of many sessions; each is prepared as far as a call without a session is, too. */
function prepared(client: Client): readonly Prepared[] {
  return Array.from({ length: SESSIONS }, (_, index) => {
    const { headers, body } = sessionTurns(client, `session-${index}`, TURNS)('m', TURNS - 1)
    const scan = scanObject(Buffer.from(JSON.stringify(body)))
    const request = {
      model: 'm',
      session: sessionFinder(headers, scan, MESSAGES_COMPARISON_RULES),
      json: { scan, dialect: { conversation: MESSAGES_COMPARISON_RULES } },
    }
    const plan = { request, settings: { options: affinityOptions }, channels: [{ channel }] }
    const session = sessions.of(2, plan.request)
    return { plan: plan as unknown as Plan, session, tag: sessionInRow(session) }
  })
}

const sessions = new Sessions(key)
const affinity = new SessionAffinity({
  store: new LocalDigests(),
  metrics,
  nowMs: () => performance.now(),
})
const breaks = new CacheBreaks({ previous: new LocalPreviousCalls(), key, metrics })
const calls = prepared('claude')
const callAt = (n: number): Prepared => calls[n % calls.length] as Prepared

const WORK: Readonly<Record<string, (n: number) => unknown>> = {
  'the session in rows': (n) => sessionInRow(sessions.of(2, callAt(n).plan.request)),
  'keeping it with one key': (n) => {
    const { plan, session } = callAt(n)
    const call = affinity.of(2, session, [plan] as unknown as Plans)
    const [arranged] = (call?.arranged([plan] as unknown as Plans) ?? []) as readonly Plan[]
    if (!call || !arranged) throw new Error('the call has no affinity')
    call.ordered(arranged, target.channel, keys)
    call.attempted(arranged, target)
    call.answered(arranged, target, CACHED, true)
  },
  'comparing a call without a cache': (n) => {
    const { plan, tag } = callAt(n)
    return breaks
      .of(1, `plain ${tag}`, Date.now())
      ?.answered({ plan, target, usage: PLAIN, diagnosis: undefined })
  },
  'comparing a call that reads a cache': (n) => {
    const { plan, tag } = callAt(n)
    return breaks.of(1, tag, Date.now())?.answered({ plan, target, usage: CACHED, diagnosis: undefined })
  },
}

function microsOf(work: (n: number) => unknown, count: number): number {
  const began = performance.now()
  for (let n = 0; n < count; n++) work(n)
  return ((performance.now() - began) * 1000) / count
}

let failed = 0
for (const [name, work] of Object.entries(WORK)) {
  const count = name.includes('reads') ? CALLS / 50 : CALLS
  microsOf(work, count)
  const rounds = Array.from({ length: ROUNDS }, () => microsOf(work, count)).toSorted((a, b) => a - b)
  const median = rounds[Math.floor(ROUNDS / 2)] ?? 0
  const quickest = rounds[0] ?? 0
  // Other work on the machine only slows a round down.
  if (name.includes('key') && quickest > LIMIT_MICROS) failed = 1
  console.log(`${name}: ${median.toFixed(2)} µs (quickest ${quickest.toFixed(2)})`)
}
process.exitCode = options.check ? failed : 0
