import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { contentFrame, DONE_FRAME, finishFrame, type Streamed, usageText } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { eventFrame, messageFrames } from '../fixtures/messages-behaviour.ts'
import { retryWhileOverloaded, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const AT_ONCE = 20
const MAXIMUM = 50
/** The tokens that the upstream sends instead of the maximum. */
const TENFOLD = 10 * MAXIMUM
const SLICE_TOKENS = 100
/** Quota units per output token. The prompt is free, so that a hold is the maximum cost of the output. */
const UNITS = 4
const SLICE = UNITS * SLICE_TOKENS
const HOLD = UNITS * MAXIMUM
const WORD = ' banana'

type Protocol = 'chat' | 'messages'

const CHAT: Streamed = {
  kind: 'stream',
  events: TENFOLD,
  paceMs: 1,
  word: WORD,
  usageIn: 'always',
  usage: usageText(10, TENFOLD),
}
const MESSAGES: Streamed = { kind: 'stream', ending: 'no done', paceMs: 1, frames: framesOfMessages() }

function framesOfMessages(): string[] {
  const frames = messageFrames([{ text: WORD }], { counts: { input_tokens: 10, output_tokens: TENFOLD } })
  const delta = eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: WORD } })
  const end = frames.length - 3
  return [...frames.slice(0, end), ...Array.from({ length: TENFOLD }, () => delta), ...frames.slice(end)]
}

const PATHS = { chat: '/v1/chat/completions', messages: '/v1/messages' } as const
const LAST = { chat: 'data: [DONE]', messages: 'event: message_stop' } as const

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { hold_tokens: SLICE_TOKENS, retries: 0 },
    rate_limits: {},
    models: priced(['chat', 'messages'], { input: 0, output: 2 * UNITS }),
    channels: [
      channel('chat', upstream.baseUrl('chat')),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

/**
 * Makes this number of calls at once, with exactly enough quota for their holds. Returns the outcomes and the
 * amount spent.
 */
async function spend(
  client: Protocol,
  model: Protocol,
  behaviour: Streamed,
  calls: number,
): Promise<{ answers: FullResponse[]; spent: number; remain: number }> {
  const { id, used_quota: before } = database.token('token-ann')
  const quota = calls * HOLD
  const put = await manage(fixture.gateway.url, ANN, 'PUT /api/token/', {
    id,
    unlimited_quota: false,
    remain_quota: quota,
  })
  expect(put.status, put.message).toBe(200)
  const messages = [{ role: 'user', content: 'hi' }]
  const request = { model, stream: true, max_tokens: MAXIMUM, messages }
  const send = () => retryWhileOverloaded(() => fixture.chat('ann', request, { path: PATHS[client] }))
  // All calls are in flight before the first is answered.
  const { promise: after, resolve: release } = Promise.withResolvers<void>()
  fixture.upstream.script(model, { ...behaviour, after })
  const sent = Array.from({ length: calls }, send)
  await fixture.upstream.receivedAtLeast(model, calls)
  release()
  const answers = await Promise.all(sent)
  const { used_quota: used, remain_quota: remain } = database.token('token-ann')
  expect(remain).toBe(quota - (used - before))
  expect(database.openHolds()).toEqual([])
  return { answers, spent: used - before, remain }
}

describe('upstreams that send ten times the maximum, twenty at a time', () => {
  test.each([
    ['chat', 'chat'],
    ['messages', 'messages'],
    ['chat', 'messages'],
    ['messages', 'chat'],
  ] as const)(
    'streams above their maximum, %s from %s, end with an error, and overspend by at most one slice of quota each',
    async (client, upstream) => {
      const behaviour = { chat: CHAT, messages: MESSAGES }[upstream]
      const { answers, spent, remain } = await spend(client, upstream, behaviour, AT_ONCE)
      console.info(`${client} from ${upstream}: ${AT_ONCE * HOLD} set, ${spent} spent, ${SLICE} a slice`)
      for (const { status, headers, text } of answers) {
        expect(status).toBe(200)
        expect(text.slice(-300)).not.toContain(LAST[client])
        const last = text.trim().split('\n\n').at(-1) ?? ''
        const { error } = JSON.parse(last.slice(last.indexOf('{')))
        expect(error.message).toMatch(/the quota held for this response is used up/)
        // Which of them it is depends on the calls that are still under way.
        expect(['insufficient_quota', 'quota_held']).toContain(error.code)
        if (client === 'messages') expect(error.type).toBe('gateway_error')
        expect(database.usageOf(String(headers['x-request-id']))?.reason).toBe('cut')
      }
      expect(remain).toBeGreaterThanOrEqual(-AT_ONCE * SLICE)
      // No call was cut off too early.
      expect(spent).toBeGreaterThanOrEqual(AT_ONCE * HOLD)
    },
  )
})

test.each(['chat', 'messages'] as const)(
  'a %s stream that exceeds its maximum is cut off where the held quota ends, even if it arrives in one piece',
  async (protocol) => {
    const frames =
      protocol === 'messages'
        ? framesOfMessages()
        : [...Array.from({ length: TENFOLD }, () => contentFrame(WORD)), finishFrame(), DONE_FRAME]
    const inOnePiece: Streamed = { kind: 'stream', ending: 'no done', frames: [frames.join('')] }
    const { answers, remain } = await spend(protocol, protocol, inOnePiece, 1)
    expect(answers[0]?.text).toMatch(/the quota held for this response is used up/)
    expect(answers[0]?.text).not.toContain(LAST[protocol])
    expect(remain).toBeGreaterThanOrEqual(-SLICE)
  },
)
