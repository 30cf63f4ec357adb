import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const KEYS = ['upstream-secret-one', 'upstream-secret-two', 'upstream-secret-three']
const MODELS = ['turns', 'refused401', 'refused403', 'refused407', 'allbad', 'limited', 'spare', 'alone']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: priced(MODELS),
    channels: [
      ...MODELS.map((model) => channel(model, upstream.baseUrl(model), { keys: KEYS, priority: 5 })),
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
