import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { byTier } from '../runner/tier.ts'

const CALLERS = {
  annone: { user: 'ann', group: 'default' },
  anntwo: { user: 'ann', group: 'default' },
  annvip: { user: 'ann', group: 'vip' },
  bob: { user: 'bob', group: 'default' },
  vic: { user: 'vic', group: 'vip' },
  few: { user: 'ann', group: 'default' },
} as const
type Key = keyof typeof CALLERS
const KEYS = Object.keys(CALLERS) as Key[]
const MODELS = ['m', 'n'] as const
const SCOPES = ['token', 'user', 'group'] as const
const PRICES = [1, 2] as const
/** Calls one after the other, and bursts of calls at once. */
const STEPS = byTier(60, 240)
const BURSTS = byTier(2, 12)

function configuration(upstream: ScriptedUpstream, scope: string, price: number) {
  return {
    options: { cache: { ttl: '10m', scope } },
    groups: { vip: { ratio: 0.5 } },
    models: priced([...MODELS], { input: price, output: price }),
    channels: [channel('all', upstream.baseUrl('all'), { models: [...MODELS], groups: ['default', 'vip'] })],
    users: [
      ROOT,
      user(2, 'ann', [
        token('annone'),
        token('anntwo'),
        token('annvip', { group: 'vip' }),
        token('few', { model_limits_enabled: true, model_limits: 'n' }),
      ]),
      user(5, 'bob', [token('bob')]),
      user(6, 'vic', [token('vic')], { group: 'vip' }),
    ],
  }
}

let fixture: Fixture
/** The number of answers that the upstream made. Each answer has another content. */
let made = 0
beforeAll(async () => {
  fixture = await startFixture((upstream) => configuration(upstream, SCOPES[0], PRICES[0]))
  fixture.upstream.decide('all', ({ text }) => {
    const content = `answer ${(made += 1)}`
    return text.includes('"stream":true')
      ? { kind: 'stream', events: 1, word: content, paceMs: 3 }
      : { kind: 'whole', content }
  })
})
afterAll(() => fixture?.close())

const apply = (scope: string, price: number): Promise<void> =>
  fixture.gateway.apply(configuration(fixture.upstream, scope, price))

const ownerOf = (scope: string, key: Key): string => {
  const { user: name, group } = CALLERS[key]
  return `${scope === 'token' ? key : scope === 'user' ? name : ''} ${group}`
}

describe.each(SCOPES)('random calls of several keys, with the scope %s', (scope) => {
  test('a call gets a cached answer only if it was made for the same owner, model, body and prices', async () => {
    await apply(scope, PRICES[0])
    const random = randomFrom(SCOPES.indexOf(scope) + 7)
    const next = (below: number): number => Math.floor(random() * below)
    /** The answer that each owner, model, body and price has. */
    const known = new Map<string, string>()
    let price: number = PRICES[0]
    let hits = 0
    for (let step = 0; step < STEPS; step += 1) {
      if (step % 30 === 29) {
        price = PRICES[next(PRICES.length)] ?? PRICES[0]
        await apply(scope, price)
      }
      const key = KEYS[next(KEYS.length)] ?? 'bob'
      const model = MODELS[next(MODELS.length)] ?? 'm'
      const messages = [{ role: 'user', content: `question ${next(3)}, scope ${scope}` }]
      const stream = next(2) === 0
      const body =
        next(2) === 0
          ? { model, messages, stream }
          : { stream, messages, model, metadata: { step: String(step) } }
      const answer = await fixture.chat(key, body)
      if (key === 'few' && model === 'm') {
        expect(answer.status).toBe(403)
        continue
      }
      const found = /answer \d+/.exec(answer.text)?.[0]
      const identity = JSON.stringify([ownerOf(scope, key), model, messages, price])
      const isHit = answer.headers['x-gateway-cache'] === 'hit'
      expect({ step, isHit, found }).toEqual({
        step,
        isHit: known.has(identity),
        found: known.get(identity) ?? `answer ${made}`,
      })
      known.set(identity, found ?? '')
      if (isHit) hits += 1
    }
    expect(hits).toBeGreaterThan(STEPS / 4)
  })

  test('simultaneous calls share an answer only if their owner, model, body and prices are equal', async () => {
    const before = made
    const random = randomFrom(SCOPES.indexOf(scope) + 31)
    const next = (below: number): number => Math.floor(random() * below)
    const owners = new Map<string, string>()
    const answers = new Map<string, string>()
    for (let burst = 0; burst < BURSTS; burst += 1) {
      const price: number = PRICES[next(PRICES.length)] ?? PRICES[0]
      await apply(scope, price)
      await Promise.all(
        Array.from({ length: 40 }, async () => {
          const key = KEYS[next(KEYS.length)] ?? 'bob'
          const model = MODELS[next(MODELS.length)] ?? 'm'
          const messages = [{ role: 'user', content: `question ${next(3)} at once, scope ${scope}` }]
          const answer = await fixture.chat(key, { model, messages, stream: next(2) === 0 })
          if (key === 'few' && model === 'm') return expect(answer.status).toBe(403)
          const found = /answer \d+/.exec(answer.text)?.[0] ?? 'none'
          const identity = JSON.stringify([ownerOf(scope, key), model, messages, price])
          expect(answers.get(identity) ?? found).toBe(found)
          expect(owners.get(found) ?? identity).toBe(identity)
          answers.set(identity, found)
          owners.set(found, identity)
        }),
      )
    }
    expect(made - before).toBe(answers.size)
  })
})
