import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES } from '../fixtures/routes.ts'
import { MODEL } from '../conversion/fixture.ts'
import { manage } from '../fixtures/account.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { databaseOf } from '../fixtures/database.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const CLIENTS = 40
const CALLS_EACH = 15
const SEED = 20_261_120

const random = randomFrom(SEED)
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => configuration((lane) => upstream.baseUrl(lane)))
  for (const lane of [MODEL.chat, MODEL.messages]) fixture.upstream.decide(lane, echo)
})
afterAll(() => fixture?.close())

function configuration(baseUrl: (lane: string) => string): Configuration {
  return {
    rate_limits: { global: { requests: 0 } },
    models: priced([MODEL.chat, MODEL.messages]),
    channels: [
      channel(MODEL.chat, baseUrl(MODEL.chat)),
      channel(MODEL.messages, baseUrl(MODEL.messages), { protocol: 'messages' }),
    ],
    users: [
      ROOT,
      ...Array.from({ length: CLIENTS }, (_, i) =>
        user(10 + i, `user${i}`, [token(`key${i}`)], { access_token: `access-token-of-user-${i}` }),
      ),
    ],
  }
}

/** Makes the upstream return the owner of the prompt, in a few pieces, after a while. */
function echo({ lane, text }: Received): Behaviour {
  const { stream } = JSON.parse(text)
  const marker = /marker\d+x/.exec(text)?.[0] ?? 'none'
  const after = sleep(random() * 30)
  if (lane === MODEL.messages) {
    const blocks = [{ text: marker }, { text: marker }]
    return { ...(stream === true ? streamedMessage(blocks) : wholeMessage(blocks)), after }
  }
  if (stream === true) return { kind: 'stream', word: marker, events: 4, paceMs: random() * 6, after }
  return { kind: 'whole', content: marker, after }
}

describe('concurrent clients, some of which hang up', () => {
  test('concurrent clients each get their own responses only, and pay for their own calls', {
    timeout: 300_000,
  }, async () => {
    const answered = new Map<number, string[]>()
    let heard = 0
    const client = async (index: number): Promise<void> => {
      const marker = `marker${index}x`
      for (let i = 0; i < CALLS_EACH; i++) {
        const stream = random() < 0.6
        const way = random() < 0.5 ? '/v1/chat/completions' : '/v1/messages'
        const model = random() < 0.5 ? MODEL.chat : MODEL.messages
        // The prompts of all clients are the same, except for the marker.
        const body = {
          model,
          stream,
          max_tokens: 50,
          messages: [{ role: 'user', content: `I am ${marker}` }],
        }
        const answer = await fixture.live(`key${index}`, body, { path: way }).catch(() => undefined)
        if (!answer) continue
        if (random() < 0.1) {
          await sleep(random() * 10)
          answer.abort()
        }
        const { status, text, headers } = await answer.end()
        if (status === 200) {
          const markers = new Set(text.match(/marker\d+x/g))
          expect(
            [...markers].filter((each) => each !== marker),
            text,
          ).toEqual([])
          heard += markers.size
          expect(headers['cache-control']).toContain('no-store')
          answered.set(index, [...(answered.get(index) ?? []), String(headers['x-request-id'])])
        }
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
    expect(heard).toBeGreaterThan((CLIENTS * CALLS_EACH) / 2)
    const database = databaseOf(fixture.gateway.dataDir)
    await expect.poll(() => database.openHolds()).toHaveLength(0)
    const owners = new Map(database.usage().map((row) => [row.id, row.user_id]))
    for (const [index, ids] of answered)
      for (const id of ids) expect(owners.get(id) ?? 10 + index, id).toBe(10 + index)
  })
})

const OWN = ROUTES.filter(({ access, path }) => access === 'account' && path.includes(':id'))
const MISSING = 999_999

describe('the data of another account', () => {
  test('the profile of a user does not contain the data of another account', async () => {
    for (const index of [0, 1]) {
      const account = { id: 10 + index, accessToken: `access-token-of-user-${index}` }
      const { text } = await profile(account)
      expect(text).toContain(`"user${index}"`)
      expect(text).not.toContain(`"user${1 - index}"`)
    }
  })

  test("on every path with an id, the id of another account's object is answered like the id of a missing object", async () => {
    const ann = { id: 10, accessToken: 'access-token-of-user-0' }
    const foreign = databaseOf(fixture.gateway.dataDir).token('token-key1').id
    const told = async (route: (typeof OWN)[number], id: number): Promise<string> => {
      const request = `${route.method} ${route.path.replace(':id', String(id))}` as `GET /${string}`
      const { status, body } = await manage(
        fixture.gateway.url,
        ann,
        request,
        route.method === 'GET' ? undefined : {},
      )
      return `${status} ${JSON.stringify(body)}`.replaceAll(String(id), 'ID')
    }
    expect(OWN.length).toBeGreaterThan(2)
    for (const route of OWN) {
      const [theirs, missing] = [await told(route, foreign), await told(route, MISSING)]
      expect(theirs, `${route.method} ${route.path}`).toBe(missing)
      expect(theirs).toMatch(/^4\d\d /)
    }
    expect(databaseOf(fixture.gateway.dataDir).token('token-key1').status).toBe(1)
  })
})

function profile({ id, accessToken }: { id: number; accessToken: string }): Promise<FullResponse> {
  return call(fixture.gateway.url, undefined, {
    method: 'GET',
    path: '/api/user/self',
    headers: { authorization: accessToken, 'gateway-user': String(id) },
  })
}
