import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Behaviour, errorBody, usageText } from '../fixtures/behaviour.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const FAILING: Behaviour = { kind: 'status', status: 503, body: errorBody('out of order') }
/** One and four quota units a token; the expensive model costs ten times as much. */
const PLAIN = { input: 2, output: 8 }
const DEAR = { input: 20, output: 80 }
const TEXT = 'word '.repeat(800)
/** Tokens of the text that a provider reports: more than one for 32 bytes. */
const TOKENS = 200

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      first: { price: PLAIN, fallback: ['second', 'third'] },
      second: { price: PLAIN },
      third: { price: DEAR },
    },
    channels: ['first', 'second', 'third'].map((name) => channel(name, upstream.baseUrl(name))),
    users: [
      ROOT,
      user(2, 'ann', [token('scarce', { remain_quota: 20_000 }), token('ample', { remain_quota: 200_000 })]),
    ],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const turn = (...later: readonly object[]) =>
  ask('first', { max_tokens: 10, messages: [{ role: 'user', content: TEXT }, ...later] })
const CONTINUED = turn({ role: 'assistant', content: 'fine' }, { role: 'user', content: 'and now?' })

// The tokens of the first turn are known for the first model alone. At each other model the prompt is bounded by its bytes.
async function failAfterFirstTurn(): Promise<void> {
  fixture.upstream.script('first', { kind: 'whole', content: 'fine', usage: usageText(TOKENS, 5) })
  expect((await fixture.chat('ample', turn())).status).toBe(200)
  for (const lane of ['first', 'second']) fixture.upstream.script(lane, FAILING)
  fixture.upstream.script('third', { kind: 'whole', usage: usageText(4_000, 10) })
  fixture.upstream.forget('third')
}

test('a call is not sent to a fallback whose price the quota does not cover, after another fallback has raised the hold', async () => {
  await failAfterFirstTurn()
  const answer = await fixture.chat('scarce', CONTINUED)
  expect(fixture.upstream.received('third')).toEqual([])
  expect(answer.status).toBe(503)
  expect(database.token('token-scarce').remain_quota).toBe(20_000)
})

test('a call goes on to an expensive fallback whose price the quota covers, and is charged its price', async () => {
  await failAfterFirstTurn()
  const answer = await fixture.chat('ample', CONTINUED)
  expect(answer.status, answer.text).toBe(200)
  expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({
    model: 'third',
    quota: 4_000 * 10 + 10 * 40,
  })
})
