import { expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { startFixture } from '../fixtures/fixture.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { byTier } from '../runner/tier.ts'

const GROUPS = { ann: 'default', anntwo: 'default', bob: 'default', vip: 'vip', few: 'default' } as const
type Key = keyof typeof GROUPS
const KEYS = Object.keys(GROUPS) as Key[]
/** `f` has the fallback `n`; the key `few` has no permission for `f`. */
const MODELS = ['n', 'f'] as const
const ENDPOINTS = ['/v1/chat/completions', '/v1/messages', '/v1/responses'] as const
/** Words that a guard removes from what the keys of ann get; empty is no guard. */
const GUARDED = ['', 'alpha', 'beta'] as const

/** What the configuration says at a time. */
interface State {
  readonly price: number
  readonly word: (typeof GUARDED)[number]
}

function configuration(upstream: ScriptedUpstream, { price, word }: State) {
  const models = priced([...MODELS], { input: price, output: price })
  return {
    options: { retries: 0, cache: { ttl: '10m', scope: 'group' } },
    groups: { vip: {} },
    models: { ...models, f: { ...(models['f'] as object), fallback: ['n'] } },
    channels: MODELS.map((model) =>
      channel(model, upstream.baseUrl(model), { models: [model], groups: ['default', 'vip'] }),
    ),
    guards:
      word === ''
        ? []
        : [{ name: 'mask', do: 'redact', match: { words: [word] }, tokens: ['token-ann', 'token-anntwo'] }],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('anntwo')]),
      user(5, 'bob', [
        token('bob'),
        token('vip', { group: 'vip' }),
        token('few', { model_limits_enabled: true, model_limits: 'n' }),
      ]),
    ],
  }
}

function bodyOf(path: (typeof ENDPOINTS)[number], model: string, question: string, stream: boolean): object {
  if (path === '/v1/responses') return { model, input: question, store: false, stream }
  return { model, max_tokens: 50, messages: [{ role: 'user', content: question }], stream }
}

/** What an answer says, in any form. */
function saidIn({ text }: FullResponse): string {
  const texts = Array.from(text.matchAll(/"(?:content|text|delta)":\s?"([^"]*)"/g), ([, said]) => said)
  return /answer \d+ [^ ]+ [^.]+\./.exec(texts.join(''))?.[0] ?? text
}

test.each(byTier([11], [11, 12]))(
  'random calls (%s) get a cached answer only if its prices, guards, endpoint, model and group were the same',
  async (seed) => {
    let made = 0
    let isDown = false
    const random = randomFrom(seed)
    const next = (below: number): number => Math.floor(random() * below)
    const pick = <Value>(values: readonly Value[]): Value => values[next(values.length)] as Value
    let state: State = { price: 1, word: '' }
    const fixture = await startFixture((upstream) => configuration(upstream, state))
    for (const model of MODELS)
      fixture.upstream.decide(model, ({ text }) => {
        if (model === 'f' && isDown) return { kind: 'status', status: 503 }
        const content = `answer ${(made += 1)} alpha beta.`
        return text.includes('"stream":true')
          ? { kind: 'stream', events: 1, word: content }
          : { kind: 'whole', content }
      })
    /** What is kept, by everything on which an answer depends. */
    const known = new Map<string, string>()
    const counts = { hits: 0, fallbacks: 0, refused: 0 }
    for (let step = 0; step < 200; step += 1) {
      if (step % 25 === 24) {
        state = { price: pick([1, 2]), word: pick(GUARDED) }
        isDown = next(2) === 0
        await fixture.gateway.apply(configuration(fixture.upstream, state))
      }
      const [key, model, path] = [pick(KEYS), pick(MODELS), pick(ENDPOINTS)]
      const question = `question ${next(2)}`
      const answer = await call(fixture.gateway.url, bodyOf(path, model, question, next(2) === 0), {
        key,
        path,
      })
      if (key === 'few' && model === 'f') {
        expect(answer.status).toBe(403)
        counts.refused += 1
        continue
      }
      const word = key.startsWith('ann') ? state.word : ''
      const identity = JSON.stringify([GROUPS[key], path, model, question, state.price, word])
      const isHit = answer.headers['x-gateway-cache'] === 'hit'
      const own = `answer ${made} alpha beta.`.replace(word === '' ? /^$/ : word, '[REDACTED]')
      expect({ step, identity, isHit, said: saidIn(answer) }).toEqual({
        step,
        identity,
        isHit: known.has(identity),
        said: known.get(identity) ?? own,
      })
      // The answer of the fallback is not kept.
      const isFallback = answer.headers['x-gateway-model'] === 'n' && model === 'f'
      if (isFallback) expect(isHit).toBe(false)
      else known.set(identity, saidIn(answer))
      counts.hits += isHit ? 1 : 0
      counts.fallbacks += isFallback ? 1 : 0
    }
    expect(counts.hits).toBeGreaterThan(20)
    expect(counts.fallbacks).toBeGreaterThan(5)
    expect(counts.refused).toBeGreaterThan(5)
    await fixture.close()
  },
)
