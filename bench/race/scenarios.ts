import type { Call } from '../candidates/candidate.ts'
import type { CandidateName } from '../candidates/candidates.ts'
import type { Arrivals } from './kinds/arrivals.ts'
import type { Bursts } from './kinds/bursts.ts'
import type { IdleMemory } from './kinds/idle-memory.ts'
import type { Paced } from './kinds/paced.ts'
import type { Saturated } from './kinds/saturated.ts'
import type { StreamMemory } from './kinds/stream-memory.ts'
import { BURST_EVENTS } from '../load/wire.ts'

/** A measurement: its candidates, and the unit of its cost. */
export type Scenario = {
  readonly title: string
  readonly unit: string
  /** Candidates in the order of the table; a quick run uses `quick`, if there is such a shorter list. */
  readonly candidates: readonly CandidateName[]
  readonly quick?: readonly CandidateName[] | 'left out'
} & (
  | ({ readonly kind: 'saturated' } & Saturated)
  | ({ readonly kind: 'paced' } & Paced)
  | ({ readonly kind: 'arrivals' } & Arrivals)
  | ({ readonly kind: 'bursts' } & Bursts)
  | ({ readonly kind: 'stream memory' } & StreamMemory)
  | ({ readonly kind: 'idle memory' } & IdleMemory)
  | { readonly kind: 'start-up' }
)

const REQUEST = 'CPU µs a request'
const EVENT = 'CPU µs an event'
const EVERYBODY: readonly CandidateName[] = ['nginx', 'haproxy', 'forwarder', 'sluice', 'portkey']
const WITHOUT_PEER: readonly CandidateName[] = ['nginx', 'haproxy', 'forwarder', 'sluice']
/** Candidates of quick runs; HAProxy is omitted because it costs as much as nginx. */
const QUICKLY: readonly CandidateName[] = ['nginx', 'forwarder', 'sluice', 'portkey']
const FEW: readonly CandidateName[] = ['nginx', 'forwarder', 'sluice']
/** Candidates for calls at a fixed rate, where the cost of a commit per call is visible. */
const AT_A_RATE: readonly CandidateName[] = ['nginx', 'haproxy', 'forwarder', 'committing', 'sluice']
/** The candidates that are compared by limits. */
const COMPARED: readonly CandidateName[] = ['forwarder', 'sluice']

const native: Call = { method: 'POST', client: 'chat', upstream: 'chat', behaviour: 'whole', bytes: 2000 }
const fromMessages: Call = { ...native, upstream: 'messages' }
const nativeResponses: Call = { ...native, client: 'responses', upstream: 'responses' }
const nativeGemini: Call = { ...native, client: 'gemini', upstream: 'gemini' }
const toMessages: Call = { ...native, client: 'messages' }
const agent = (bytes: number): Call => ({ ...native, bytes, content: 'agent, ASCII' })
const late: Call = { ...native, behaviour: 'late' }

const burst = (call: Call): Saturated => ({
  call: { ...call, behaviour: 'burst' },
  connections: 16,
  units: BURST_EVENTS,
})
const paced = (call: Call, streams: number): Paced => ({ call: { ...call, behaviour: 'paced' }, streams })

/** Every scenario, by its name for `--only` and limits.json. */
export const SCENARIOS = {
  'whole-2kb': {
    kind: 'saturated',
    title: 'whole answer, request of 2 KB, 64 connections',
    unit: REQUEST,
    candidates: EVERYBODY,
    quick: QUICKLY,
    call: native,
    connections: 64,
    units: 1,
  },
  'whole-2kb-features': {
    kind: 'saturated',
    title: 'the same with a session and a remembered prompt, which the forwarder does not have',
    unit: REQUEST,
    candidates: COMPARED,
    call: { ...native, uses: ['session', 'remembered prompts'] },
    connections: 64,
    units: 1,
  },
  'whole-100kb': {
    kind: 'saturated',
    title: 'whole answer, request of 100 KB, same protocol, 16 connections',
    unit: REQUEST,
    candidates: EVERYBODY,
    quick: QUICKLY,
    call: { ...native, bytes: 100_000 },
    connections: 16,
    units: 1,
  },
  'whole-100kb-agent': {
    kind: 'saturated',
    title: 'whole answer, request of 100 KB of a coding agent, same protocol, 16 connections',
    unit: REQUEST,
    candidates: EVERYBODY,
    quick: QUICKLY,
    call: agent(100_000),
    connections: 16,
    units: 1,
  },
  'whole-1mb-agent': {
    kind: 'saturated',
    title: 'whole answer, request of 1 MB of a coding agent, same protocol, 16 connections',
    unit: REQUEST,
    candidates: EVERYBODY,
    quick: FEW,
    call: agent(1_000_000),
    connections: 16,
    units: 1,
  },
  'burst-pass': {
    kind: 'saturated',
    title: 'stream passed on, 200 events at once',
    unit: EVENT,
    candidates: EVERYBODY,
    quick: QUICKLY,
    ...burst(native),
  },
  'whole-2kb-responses': {
    kind: 'saturated',
    title: 'whole answer of responses, request of 2 KB, 64 connections',
    unit: REQUEST,
    candidates: ['forwarder', 'sluice'],
    call: nativeResponses,
    connections: 64,
    units: 1,
  },
  'burst-pass-responses': {
    kind: 'saturated',
    title: 'stream of responses passed on, 200 events at once',
    unit: EVENT,
    candidates: ['forwarder', 'sluice'],
    ...burst(nativeResponses),
  },
  'whole-2kb-gemini': {
    kind: 'saturated',
    title: 'whole answer of Gemini, request of 2 KB, 64 connections',
    unit: REQUEST,
    candidates: ['forwarder', 'sluice'],
    call: nativeGemini,
    connections: 64,
    units: 1,
  },
  'burst-pass-gemini': {
    kind: 'saturated',
    title: 'stream of Gemini passed on, 200 events at once',
    unit: EVENT,
    candidates: ['forwarder', 'sluice'],
    ...burst(nativeGemini),
  },
  'burst-from-gemini': {
    kind: 'saturated',
    title: 'stream of Gemini converted for a chat client, 200 events at once',
    unit: EVENT,
    candidates: ['sluice'],
    ...burst({ ...native, upstream: 'gemini' }),
  },
  'burst-to-gemini': {
    kind: 'saturated',
    title: 'stream converted for a Gemini client, 200 events at once',
    unit: EVENT,
    candidates: ['sluice'],
    ...burst({ ...native, client: 'gemini' }),
  },
  'burst-to-chat': {
    kind: 'saturated',
    title: 'stream converted for a chat client, 200 events at once',
    unit: EVENT,
    candidates: EVERYBODY,
    quick: QUICKLY,
    ...burst(fromMessages),
  },
  'burst-to-messages': {
    kind: 'saturated',
    title: 'stream converted for a messages client, 200 events at once',
    unit: EVENT,
    candidates: WITHOUT_PEER,
    quick: FEW,
    ...burst(toMessages),
  },
  'paced-100-pass': {
    kind: 'paced',
    title: '100 streams of 20 events/s, passed on',
    unit: EVENT,
    candidates: EVERYBODY,
    quick: 'left out',
    ...paced(native, 100),
  },
  'paced-100-to-chat': {
    kind: 'paced',
    title: '100 streams of 20 events/s, converted for chat clients',
    unit: EVENT,
    candidates: EVERYBODY,
    quick: 'left out',
    ...paced(fromMessages, 100),
  },
  'paced-100-to-messages': {
    kind: 'paced',
    title: '100 streams of 20 events/s, converted for messages clients',
    unit: EVENT,
    candidates: WITHOUT_PEER,
    quick: 'left out',
    ...paced(toMessages, 100),
  },
  'paced-400-pass': {
    kind: 'paced',
    title: '400 streams of 20 events/s, passed on',
    unit: EVENT,
    candidates: EVERYBODY,
    quick: FEW,
    ...paced(native, 400),
  },
  'paced-400-to-chat': {
    kind: 'paced',
    title: '400 streams of 20 events/s, converted for chat clients',
    unit: EVENT,
    candidates: EVERYBODY,
    quick: COMPARED,
    ...paced(fromMessages, 400),
  },
  'paced-400-to-messages': {
    kind: 'paced',
    title: '400 streams of 20 events/s, converted for messages clients',
    unit: EVENT,
    candidates: WITHOUT_PEER,
    quick: COMPARED,
    ...paced(toMessages, 400),
  },
  'rate-50': {
    kind: 'arrivals',
    title: '50 requests/s, upstream that answers after 20 ms',
    unit: REQUEST,
    candidates: ['direct', ...AT_A_RATE, 'portkey'],
    quick: ['forwarder', 'committing', 'sluice'],
    call: late,
    perSecond: 50,
  },
  'rate-500': {
    kind: 'arrivals',
    title: '500 requests/s, upstream that answers after 20 ms',
    unit: REQUEST,
    candidates: ['direct', ...AT_A_RATE, 'portkey'],
    quick: ['direct', 'nginx', 'forwarder', 'committing', 'sluice'],
    call: late,
    perSecond: 500,
  },
  'rate-2000': {
    kind: 'arrivals',
    title: '2,000 requests/s, upstream that answers after 20 ms; Portkey cannot',
    unit: REQUEST,
    candidates: ['direct', ...AT_A_RATE],
    quick: ['nginx', 'forwarder', 'committing', 'sluice'],
    call: late,
    perSecond: 2000,
  },
  bursts: {
    kind: 'bursts',
    title: 'whole answer, request of 2 KB, 64 connections: a new process, and bursts of 3,000 after quiet',
    unit: REQUEST,
    candidates: ['forwarder', 'sluice'],
    call: native,
    connections: 64,
  },
  'stream-memory': {
    kind: 'stream memory',
    title: '1,000 idle streams',
    unit: 'KB a stream',
    candidates: EVERYBODY,
    quick: FEW,
    call: { ...native, behaviour: 'idle' },
    streams: 1000,
  },
  'idle-memory': {
    kind: 'idle memory',
    title: 'nobody asks, after 100 calls',
    unit: 'MB resident',
    candidates: EVERYBODY,
    quick: 'left out',
    call: native,
    calls: 100,
  },
  'model-list': {
    kind: 'saturated',
    title: 'list of models; the forwarder sends one that was made before',
    unit: REQUEST,
    candidates: ['forwarder', 'sluice'],
    call: { ...native, method: 'GET' },
    connections: 64,
    units: 1,
  },
  'start-up': {
    kind: 'start-up',
    title:
      '"npm start" to the first answer, empty data folder; the base is a bare node:http server that npm starts',
    unit: 'ms',
    candidates: [],
  },
} as const satisfies Record<string, Scenario>

/** The name of a scenario. */
export type ScenarioName = keyof typeof SCENARIOS

/** Kinds of scenarios that start new processes for each measurement. */
const STARTED_ANEW: ReadonlySet<Scenario['kind']> = new Set([
  'bursts',
  'stream memory',
  'idle memory',
  'start-up',
])

/** Whether each measurement of a scenario starts a separate process. */
export function isStartedAnew({ kind }: Scenario): boolean {
  return STARTED_ANEW.has(kind)
}
