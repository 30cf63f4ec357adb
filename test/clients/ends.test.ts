import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endReasonOf, REASONS_OF_PROVIDERS } from '@sluice/wire/end-reasons'
import { askingClients, CLIENTS, MEANINGS, type Outcome } from '../fixtures/asking-clients.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import {
  sendsFrames,
  sendsJson,
  streamedAnswer,
  type Upstream,
  UPSTREAMS,
  wholeAnswer,
} from '../fixtures/ended-answers.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { pairsByDay } from '../runner/tier.ts'

// The law of `docs/api.md: How an answer ends` and `Errors in a 200`: whatever protocol upstream and client speak, whole or
// streamed, the official client libraries see the outcome that the tables name.

let fixture: Fixture
let asks: ReturnType<typeof askingClients>
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced([...UPSTREAMS]),
    channels: UPSTREAMS.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  asks = askingClients(fixture.gateway.url, 'sk-ann')
})
afterAll(() => fixture?.close())

/** Asks with the client of a protocol an upstream that behaves like this. */
const ask = (
  client: Upstream,
  upstream: Upstream,
  stream: boolean,
  behaviour: Behaviour,
): Promise<Outcome> => {
  fixture.upstream.script(upstream, behaviour)
  return asks(client, upstream, stream)
}

/** The meanings of the table, in the order of the columns of the page. */
const COLUMNS = [
  ['end', 'toolCalls', 'stopSequence', 'pause'],
  ['length'],
  ['filtered'],
  ['refused'],
  ['failed', 'badAnswer', 'badRequest'],
] as const
const CAUSES: Readonly<Record<string, string>> = { badAnswer: ' (model)', badRequest: ' (request)' }

test('the page lists the reasons that the code knows, and no others', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8')
  const [, section = ''] = page.split('\n### How an answer ends\n')
  const rows = section.split('\n').filter((line) => line.startsWith('| ['))
  const known = REASONS_OF_PROVIDERS.map(({ provider, source, reasons }) => {
    const cells = COLUMNS.map((meanings) =>
      meanings
        .flatMap((meaning) => (reasons[meaning] ?? []).map((name) => `\`${name}\`${CAUSES[meaning] ?? ''}`))
        .join(', '),
    )
    return `| [${provider}](${source}) | ${cells.map((cell) => cell || '–').join(' | ')} |`
  })
  expect(rows.slice(0, known.length)).toEqual(known)
})

const REASONS = [
  ...new Set(REASONS_OF_PROVIDERS.flatMap(({ reasons }) => Object.values(reasons).flat())),
  'unheard_of',
]

/** Whether an upstream of the protocol can state the reason: responses name one only if they are incomplete. */
const states = (upstream: Upstream, reason: string): boolean =>
  upstream !== 'responses' ||
  reason === 'completed' ||
  !['good', undefined].includes(endReasonOf(reason)?.class)

const WORDS = 'canary words of the provider'

/** Each case of an upstream with each client, whole and streamed: all at night, pairs of them by day. */
function rowsOf<Case>(cases: (upstream: Upstream) => readonly Case[]) {
  return pairsByDay(
    UPSTREAMS.flatMap((upstream) =>
      CLIENTS.flatMap((client) =>
        [false, true].flatMap((stream) =>
          cases(upstream).map((one) => [upstream, client, stream, one] as const),
        ),
      ),
    ),
  )
}

/** What the client sees, in the words of the table. */
function seen(client: Upstream, { reason, error, text }: Outcome): string {
  if (error) return `failed ${error.status ?? 'in the stream'} after "${text}": ${error.message}`
  return `${MEANINGS[client][reason ?? ''] ?? `reason ${reason}`} "${text}"`
}

/** Forms of errors, with the status that the client gets. */
const ERRORS: readonly { readonly body: object; readonly status: number }[] = [
  { body: { error: { message: WORDS, code: 429 } }, status: 429 },
  { body: { error: { message: WORDS, code: 502 } }, status: 500 },
  { body: { error: { message: WORDS, type: 'overloaded_error' } }, status: 529 },
  { body: { error: { message: WORDS, type: 'invalid_request_error', code: null } }, status: 400 },
  { body: { error: WORDS }, status: 500 },
  { body: { type: 'error', error: { type: 'rate_limit_error', message: WORDS } }, status: 429 },
  { body: { error: { code: 503, status: 'UNAVAILABLE', message: WORDS } }, status: 503 },
  { body: { object: 'error', code: 422, message: { detail: [{ msg: WORDS }] } }, status: 422 },
]
const FORMS = ['application/json', 'text/event-stream', 'text/plain', 'text/html'].flatMap((contentType) =>
  [false, true].map((isStream) => ({ contentType, isStream })),
)
const GOOD = { chat: 'stop', messages: 'end_turn', responses: 'completed', gemini: 'STOP' } as const

const reasonRows = rowsOf((upstream) => REASONS.filter((one) => states(upstream, one)))
const errorRows = rowsOf(() => ERRORS)
const formRows = rowsOf(() => FORMS)

describe.each(UPSTREAMS)('an upstream of %s', (of) => {
  test('every reason of the table is seen as what it means', async () => {
    const differing: string[] = []
    for (const [upstream, client, stream, reason] of reasonRows) {
      if (upstream !== of) continue
      const answer = { text: 'said', reason, message: WORDS }
      const behaviour = stream
        ? sendsFrames(streamedAnswer(upstream, answer))
        : sendsJson(wholeAnswer(upstream, answer))
      const outcome = seen(client, await ask(client, upstream, stream, behaviour))
      if (!expected(client, stream, reason).test(outcome))
        differing.push(`${client}, streamed: ${stream}, ${reason}: ${outcome}`)
    }
    expect(differing).toEqual([])

    function expected(client: Upstream, stream: boolean, reason: string): RegExp {
      const end = endReasonOf(reason)
      if (end?.class === 'failed') {
        if (of === client && !stream) return new RegExp(`^reason ${reason} "said"$`)
        const words = of === 'gemini' ? WORDS : `the answer ended with the reason ${reason}`
        const place = stream
          ? 'in the stream after "said"'
          : `${end.culprit === 'request' ? 400 : 500} after ""`
        return new RegExp(`^failed ${place}: .*${words}`)
      }
      const meaning = end?.class === 'refused' ? 'filtered' : (end?.class ?? 'good')
      // A native answer is not changed.
      return of === client
        ? new RegExp(`^(?:reason ${reason}|${meaning}) "said"$`)
        : new RegExp(`^${meaning} "said"$`)
    }
  })

  test('every form of an error in a 200 is the error that it states', async () => {
    const differing: string[] = []
    for (const [upstream, client, stream, { body, status }] of errorRows) {
      if (upstream !== of) continue
      const text = JSON.stringify(body)
      const behaviour = stream ? sendsFrames([`data: ${text}\n\n`]) : sendsJson(text)
      const outcome = seen(client, await ask(client, upstream, stream, behaviour))
      if (!new RegExp(`^failed ${status} after "": .*${WORDS}`).test(outcome))
        differing.push(`${client}, streamed: ${stream}, ${text}: ${outcome}`)
    }
    expect(differing).toEqual([])
  })

  test('an answer in the other form is the same answer', async () => {
    const answer = { text: 'said', reason: GOOD[of] }
    const whole = wholeAnswer(of, answer)
    const frames = streamedAnswer(of, answer)
    const differing: string[] = []
    for (const [upstream, client, stream, { contentType, isStream }] of formRows) {
      if (upstream !== of) continue
      const behaviour = isStream ? sendsFrames(frames, contentType) : sendsJson(whole, contentType)
      const outcome = seen(client, await ask(client, upstream, stream, behaviour))
      if (outcome !== 'good "said"')
        differing.push(`${client}, streamed: ${stream}, ${behaviour.kind} as ${contentType}: ${outcome}`)
    }
    expect(differing).toEqual([])
  })
})
