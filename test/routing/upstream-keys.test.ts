import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { askingClients, type Client, CLIENTS } from '../fixtures/asking-clients.ts'
import {
  sendsFrames,
  sendsJson,
  streamedAnswer,
  UPSTREAMS,
  type Upstream,
  wholeAnswer,
} from '../fixtures/ended-answers.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'

const KEYS = ['upstream-secret-one', 'upstream-secret-two', 'upstream-secret-three']
const MODELS = ['turns', 'refused401', 'refused403', 'refused407', 'allbad', 'limited', 'spare', 'alone']
/** A client and an upstream of each pair of protocols. */
const PAIRS = UPSTREAMS.flatMap((upstream) => CLIENTS.map((client) => [client, upstream] as const))

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced([
      ...MODELS,
      'choice',
      ...CLIENTS.map((client) => `${client}-limit`),
      ...PAIRS.map(([client, protocol]) => `${client}-${protocol}`),
    ]),
    channels: [
      ...MODELS.map((model) => channel(model, upstream.baseUrl(model), { keys: KEYS, priority: 5 })),
      channel('choice', upstream.baseUrl('choice'), { keys: KEYS }),
      ...CLIENTS.map((client) =>
        channel(`${client}-limit`, upstream.baseUrl(`${client}-limit`), { protocol: 'gemini', keys: KEYS }),
      ),
      ...PAIRS.map(([client, protocol]) =>
        channel(`${client}-${protocol}`, upstream.baseUrl(`${client}-${protocol}`), { protocol, keys: KEYS }),
      ),
      channel('spare-channel', upstream.baseUrl('spare-channel'), { models: ['spare'], priority: 0 }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const keysSeen = (lane: string): string[] =>
  fixture.upstream.received(lane).map(({ headers }) => (headers.authorization ?? '').replace('Bearer ', ''))

describe('the keys of a channel', () => {
  test('the keys of a channel are used in turn', async () => {
    fixture.upstream.script('turns', { kind: 'whole' })
    for (let call = 0; call < 9; call++) await fixture.chat('ann', ask('turns'))
    const seen = keysSeen('turns')
    for (const key of KEYS) expect(seen.filter((each) => each === key)).toHaveLength(3)
    expect(new Set(seen.slice(0, 3)).size).toBe(3)
  })

  test.each([401, 403, 407])(
    'an upstream key that is refused with %i gets no further calls, and the call is repeated with another key',
    async (status) => {
      const lane = `refused${status}`
      fixture.upstream.decide(lane, ({ headers }) =>
        headers.authorization === `Bearer ${KEYS[1]}`
          ? { kind: 'status', status, body: errorBody('canary: bad key') }
          : { kind: 'whole' },
      )
      for (let call = 0; call < 9; call++) {
        const answer = await fixture.chat('ann', ask(lane))
        expect(answer.status, answer.text).toBe(200)
      }
      expect(keysSeen(lane).filter((key) => key === KEYS[1])).toHaveLength(1)
      expect(keysSeen(lane)).toHaveLength(10)
    },
  )

  test('a client whose call fails because the upstream refuses all keys gets a 500 api_error without the refusal', async () => {
    fixture.upstream.script('allbad', {
      kind: 'status',
      status: 401,
      body: errorBody('canary: incorrect API key provided'),
    })
    const answer = await fixture.chat('ann', ask('allbad'))
    expect(answer.status).toBe(500)
    expect(answer.json().error.type).toBe('api_error')
    expect(answer.json().error.message).toMatch(/\(request id: [^()\s]+\)$/)
    expect(answer.text).not.toMatch(/canary|upstream-secret|127\.0\.0\.1/)
    expect(new Set(keysSeen('allbad')).size).toBe(KEYS.length)
  })

  test('a call is answered by another channel if the upstream refuses all keys of the first channel', async () => {
    fixture.upstream.script('spare', { kind: 'status', status: 403, body: errorBody('no') })
    fixture.upstream.script('spare-channel', { kind: 'whole' })
    expect((await fixture.chat('ann', ask('spare'))).status).toBe(200)
    expect(fixture.upstream.received('spare-channel')).toHaveLength(1)
  })

  test('a call is answered with the next key of the channel where the upstream refuses one with 429', async () => {
    fixture.upstream.decide('limited', ({ headers }) =>
      headers.authorization === `Bearer ${KEYS[0]}`
        ? { kind: 'status', status: 429, headers: { 'retry-after': '7' }, body: errorBody('slow down') }
        : { kind: 'whole' },
    )
    for (let call = 0; call < 6; call++) expect((await fixture.chat('ann', ask('limited'))).status).toBe(200)
  })
})

const WORDS = 'canary words about the account'

interface ErrorEvent {
  readonly type?: string
  readonly [name: string]: unknown
}

/** What a provider of each protocol says about its account in the middle of a stream. */
const ABOUT_ACCOUNT: Readonly<Record<Upstream, ErrorEvent>> = {
  chat: { error: { message: WORDS, type: 'insufficient_quota', code: 'insufficient_quota' } },
  messages: { type: 'error', error: { type: 'billing_error', message: WORDS } },
  responses: {
    type: 'response.failed',
    response: { id: 'resp_1', status: 'failed', error: { code: 'insufficient_quota', message: WORDS } },
  },
  gemini: { error: { code: 403, status: 'PERMISSION_DENIED', message: WORDS } },
}
/** Longer than this test takes. */
const RETRY_INFO = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '60s' }
const LIMIT = { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: WORDS, details: [RETRY_INFO] } }

describe('an upstream that reports an error after content', () => {
  const ends: Readonly<Record<Upstream, string>> = {
    chat: 'stop',
    messages: 'end_turn',
    responses: 'completed',
    gemini: 'STOP',
  }
  const isOfFirst = ({ headers }: Received): boolean => JSON.stringify(headers).includes(KEYS[0] ?? '')

  /** Asks until each key has had two turns; the first one fails after content. Returns the answers that failed. */
  async function failedAnswers(client: Client, lane: string, protocol: Upstream, event: ErrorEvent) {
    const frames = streamedAnswer(protocol, { text: 'half', reason: ends[protocol] })
    const begun = frames.slice(0, frames.findIndex((frame) => frame.includes('half')) + 1)
    const name = event.type === undefined ? '' : `event: ${event.type}\n`
    const failing = sendsFrames([...begun, `${name}data: ${JSON.stringify(event)}\n\n`])
    fixture.upstream.decide(lane, (request) => (isOfFirst(request) ? failing : sendsFrames(frames)))
    const asks = askingClients(fixture.gateway.url, 'sk-ann')
    const answers = []
    for (let call = 0; call < KEYS.length * 2; call += 1) answers.push(await asks(client, lane, true))
    expect(fixture.upstream.received(lane).filter(isOfFirst)).toHaveLength(1)
    return answers.filter(({ error }) => error)
  }

  test.each(PAIRS)(
    'about its account is not called with that key again, and its words are not passed on: %s of %s',
    async (client, protocol) => {
      const failed = await failedAnswers(client, `${client}-${protocol}`, protocol, ABOUT_ACCOUNT[protocol])
      const message = expect.stringContaining('broke off before the response was complete')
      expect(failed).toMatchObject([{ text: 'half', error: { message } }])
      expect(JSON.stringify(failed)).not.toMatch(/canary|insufficient_quota|billing|PERMISSION_DENIED/)
    },
  )

  test.each(CLIENTS)('about a limit is not called with that key before it ends: %s', async (client) => {
    const failed = await failedAnswers(client, `${client}-limit`, 'gemini', LIMIT)
    expect(failed).toMatchObject([{ text: 'half', error: { message: expect.stringContaining(WORDS) } }])
  })

  test('in a whole answer that names the account has its words not passed on either', async () => {
    const error = { code: 'insufficient_quota', message: WORDS }
    fixture.upstream.script(
      'choice',
      sendsJson(wholeAnswer('chat', { text: 'half', reason: 'stop', usage: null, more: { error } })),
    )
    const answer = await fixture.chat('ann', ask('choice'))
    expect(answer.status).toBe(500)
    expect(answer.text).not.toMatch(/canary/)
  })
})
