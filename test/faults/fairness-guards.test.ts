import { afterAll, beforeAll, expect, test } from 'vitest'
import { streamedContent } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** An expression with many possible states at each position of a text of these letters. */
const EXPRESSION = String.raw`[\w.-]+\.[\w.-]{2,60}\.internal`
const LENGTH = 400_000
const CALLS = 20

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    models: priced(['large', 'm', 'long', 'refused']),
    channels: ['large', 'm', 'long', 'refused'].map((name) => channel(name, upstream.baseUrl(name))),
    guards: [
      { name: 'hosts', do: 'block', match: { regex: EXPRESSION } },
      { name: 'codes', do: 'redact', where: ['output'], match: { regex: 'code-[0-9]+-x' }, with: '#' },
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  fixture.upstream.script('large', { kind: 'whole', content: 'yes' })
  // A model that takes a tenth of a second, which is less than most do.
  fixture.upstream.script('m', { kind: 'stream', events: 10, paceMs: 10 })
})
afterAll(() => fixture?.close())

let seed = 1
function hostileText(): string {
  const letters = Array.from({ length: LENGTH }, () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return 'ab.'[seed % 3]
  })
  return letters.join('')
}

/** Milliseconds of calls of another user, one after the other. */
async function callsOf(key: string, isOver: () => boolean = () => true): Promise<number[]> {
  const times: number[] = []
  while (times.length < CALLS || !isOver()) {
    const began = performance.now()
    expect((await fixture.chat(key, askStream('m'))).status).toBe(200)
    times.push(performance.now() - began)
  }
  return times
}

const median = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] as number

test('a long answer is checked in turns as a short one is: whole and streamed', async () => {
  const content = `${hostileText().slice(0, 100_000)} code-4711-x `
  fixture.upstream.script('long', { kind: 'whole', content: content.repeat(3) })
  const whole = await fixture.chat('ann', ask('long'))
  expect(whole.json().choices[0]?.message.content === content.replace('code-4711-x', '#').repeat(3)).toBe(
    true,
  )
  fixture.upstream.script('long', { kind: 'stream', events: 3, word: content })
  const { text } = await fixture.chat('ann', askStream('long'))
  expect(streamedContent(text) === content.replace('code-4711-x', '#').repeat(3)).toBe(true)
  fixture.upstream.script('refused', { kind: 'whole', content: `${content} db.prod.internal` })
  const blocked = await fixture.chat('ann', ask('refused'))
  expect(blocked.text).not.toContain('4711')
  expect(blocked.json().choices[0]?.finish_reason).toBe('content_filter')
})

test('a text on which a guard takes long delays the calls of another user to twice their median at most', async () => {
  await callsOf('bob')
  const alone = median(await callsOf('bob'))
  const bodies = [1, 2, 3].map(() => ask('large', { messages: [{ role: 'user', content: hostileText() }] }))
  let isOver = false
  const asking = (async () => {
    for (const body of bodies) expect((await fixture.chat('ann', body)).status).toBe(200)
    isOver = true
  })()
  const meanwhile = await callsOf('bob', () => isOver)
  await asking
  expect(median(meanwhile)).toBeLessThan(2 * alone)
})
