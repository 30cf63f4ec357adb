import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { eventFrame, messageFrames } from '../fixtures/messages-behaviour.ts'

const MIB = 1024 * 1024
/** Concurrent whole responses of one user: more than its share of the memory, and one beyond that. */
const CALLS = 12
const ANSWER_BYTES = 24 * MIB
/** A user that calls alone may have 7 of 8 parts of 192 MiB; one response may exceed the limit. */
const MOST_HELD = Math.floor((168 * MIB) / ANSWER_BYTES) + 1
const EVENT_BYTES = 5 * MIB

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: {},
    models: priced(['m', 'hasty', 'messages']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('hasty', upstream.baseUrl('hasty'), { timeouts: { total: '2s' } }),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('ann2')]), user(3, 'bob', [token('bob')])],
  }))
  const body = completionText('x'.repeat(ANSWER_BYTES), usageText(10, 5))
  for (const name of ['m', 'hasty']) fixture.upstream.script(name, { kind: 'whole', body })
  const frames = messageFrames([{ text: 'Look.' }])
  const delta = { type: 'text_delta', text: 'x'.repeat(EVENT_BYTES) }
  frames.splice(3, 0, eventFrame('content_block_delta', { index: 0, delta }))
  fixture.upstream.script('messages', { kind: 'stream', frames, ending: 'no done' })
})
afterAll(() => fixture?.close())

/** Makes a call, and reads nothing of its response after the headers. */
async function unread(key: string, body: object): Promise<IncomingMessage> {
  const sent = request(`${fixture.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer sk-${key}`, 'content-type': 'application/json' },
  })
  sent.end(JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

async function bytesOf(answer: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const chunk of answer) bytes += (chunk as Buffer).length
  return bytes
}

const rows = (model: string): readonly UsageRow[] =>
  databaseOf(fixture.gateway.dataDir)
    .usage()
    .filter(({ model: name }) => name === model)

test('answers that a client does not read stay within its share of memory, and each is charged and sent in the end', async () => {
  const keys = Array.from({ length: CALLS }, (_, n) => (n % 2 === 0 ? 'ann' : 'ann2'))
  const held: IncomingMessage[] = []
  const calls = keys.map((key) =>
    unread(key, ask('m')).then((answer) => {
      held.push(answer)
      return answer
    }),
  )
  await expect.poll(() => held.length).toBeGreaterThan(0)

  // Another user is served meanwhile, with a small answer, when the upstream has begun the large ones.
  await fixture.upstream.receivedAtLeast('m', CALLS)
  fixture.upstream.script('m', { kind: 'whole' })
  expect((await fixture.chat('bob', ask('m'))).status).toBe(200)

  // An event that must be complete waits for memory, too.
  let isStreamed = false
  const streaming = unread('ann', ask('messages', { stream: true }))
    .then(bytesOf)
    .finally(() => (isStreamed = true))
  // A response with a total timeout of two seconds is refused, and its upstream work is charged.
  // Its upstream may need these seconds itself, as long as it sends all the other answers.
  const hasty = async (): Promise<unknown> =>
    JSON.parse((await fixture.chat('ann', ask('hasty'))).text).error.code
  await expect.poll(hasty).toBe('overloaded')
  // What had arrived of its answer, the provider has billed.
  expect(rows('hasty').at(-1)?.reason).toBe('cut')
  expect(rows('hasty').at(-1)?.input_tokens).toBeGreaterThan(0)
  expect(rows('hasty').at(-1)?.output_tokens).toBeGreaterThan(0)
  expect(isStreamed).toBe(false)
  expect(held.length).toBeLessThanOrEqual(MOST_HELD)

  const sizes = await Promise.all(calls.map(async (sent) => bytesOf(await sent)))
  expect(Math.min(...sizes)).toBeGreaterThan(ANSWER_BYTES)
  expect(await streaming).toBeGreaterThan(EVENT_BYTES)
  const charged = rows('m').map(({ reason, input_tokens, output_tokens }) =>
    [reason, input_tokens, output_tokens].join(' '),
  )
  expect(charged.filter((one) => one === 'complete 10 5')).toHaveLength(CALLS + 1)
})
