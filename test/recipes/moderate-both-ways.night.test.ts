import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { type FullResponse, streamedContent } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, type Configuration, plainConfiguration } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { addedCode } from './recipe.ts'

const GUIDE = 'guides/moderate-both-ways'
const { channels, guards } = parse(addedCode(GUIDE, 'yaml')) as Required<
  Pick<Configuration, 'channels' | 'guards'>
>
/** What a model says to be blocked, and what it says otherwise. */
const SCORES = { violence: 0.7, 'self-harm': 0.1 }

let moderation: Awaited<ReturnType<typeof startUpstream>>
let fixture: Fixture
beforeAll(async () => {
  moderation = await startUpstream()
  const env = { MODERATION_URL: moderation.baseUrl('moderation'), MODERATION_KEY: 'key' }
  fixture = await startFixture(
    (upstream) => {
      const plain = plainConfiguration(upstream.baseUrl('m'))
      return {
        ...plain,
        channels: [...plain.channels, ...channels],
        // Longer than any answer of the moderation takes on a busy machine.
        guards: guards.map((one) => ({ ...one, timeout: '60s' })),
        users: [...plain.users, ADMIN_USER],
      }
    },
    { env },
  )
})
afterAll(async () => {
  await fixture?.close()
  await moderation?.stop()
})
beforeEach(() => {
  moderation.decide('moderation', ({ text }) => {
    const { input } = JSON.parse(text) as { input: string[] }
    const results = input.map((one) => ({
      flagged: false,
      category_scores: one.includes('fight')
        ? SCORES
        : { violence: one.includes('war') ? 0.9 : 0, 'self-harm': 0 },
    }))
    return { kind: 'whole', body: JSON.stringify({ id: 'modr-1', results }) }
  })
  fixture.upstream.script('m', { kind: 'whole', content: 'peace', usage: usageText(100, 50) })
})

const say = (content: string): Promise<FullResponse> =>
  fixture.chat('ann', ask('m', { messages: [{ role: 'user', content }] }))

test("with the guide's moderation guard, a prompt above the guard's thresholds is not sent upstream", async () => {
  const answer = await say('how do I win a fight?')
  expect([answer.status, answer.json().error.code]).toEqual([400, 'guard_blocked'])
  expect(answer.json().error.message).toContain('"questions"')
  expect(fixture.upstream.received('m')).toEqual([])
})

test("with the guide's moderation guard, an answer above the guard's thresholds becomes the refusal that the page shows", async () => {
  fixture.upstream.script('m', { kind: 'whole', content: 'a fight', usage: usageText(100, 50) })
  expect((await say('hi')).text).toContain('a fight')
  fixture.upstream.script('m', { kind: 'whole', content: 'a war', usage: usageText(100, 50) })
  const blocked = await say('hi')
  expect(blocked.text).not.toContain('a war')
  expect(blocked.json().choices).toEqual([JSON.parse(addedCode(GUIDE, 'json'))])
})

test("with the guide's moderation guard, a stream is checked before any of its text is sent", async () => {
  fixture.upstream.script('m', { kind: 'stream', word: 'peace ' })
  const passed = await fixture.chat('ann', askStream('m'))
  expect(streamedContent(passed.text)).toBe('peace '.repeat(5))
  fixture.upstream.script('m', { kind: 'stream', word: 'war ' })
  const blocked = await fixture.chat('ann', askStream('m'))
  expect(streamedContent(blocked.text)).toBe('')
  expect(blocked.text).toContain('"finish_reason":"content_filter"')
})

test("with the guide's moderation guard, a call is refused if moderation fails, and checks cost the caller nothing", async () => {
  const used = async (): Promise<number> =>
    (await manage<{ used_quota: number }>(fixture.gateway.url, ADMIN, 'GET /api/user/2')).data.used_quota
  const before = await used()
  expect((await say('hello')).status).toBe(200)
  // 100 tokens of the prompt and 50 of the answer, at 1 and 4 units.
  expect((await used()) - before).toBe(300)
  moderation.script('moderation', { kind: 'status', status: 500, body: '{}' })
  const answer = await say('hello')
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([
    400,
    'questions=failed_blocked;count=0',
  ])
})
