import { afterEach, describe, expect, test } from 'vitest'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type FullResponse, type Body, call } from '../fixtures/client.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { withoutRedis } from '../fixtures/redis-server.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { nodesOnRedis, SHARED } from './fixture.ts'

/** More than 64 KiB, so that it is remembered however large the account is. */
const LONG = 'The quick brown fox jumps over the lazy dog. '.repeat(1500)
const REPORTED = 15_000
const APPENDED = 800
const OUTPUT = 10

const configure = (upstream: ScriptedUpstream): Configuration => ({
  options: { hold_wait: 0 },
  models: priced(['m']),
  channels: [channel('m', upstream.baseUrl('m'))],
  users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1 })])],
})

let conversations = 0
const fresh = (): object[] => [{ role: 'user', content: `${++conversations} ${LONG}` }]
const goneOn = (messages: readonly object[]): object[] => [
  ...messages,
  { role: 'assistant', content: 'hello' },
  { role: 'user', content: 'and now?' },
]
const ask = (messages: readonly object[]): Body => ({ model: 'm', max_tokens: OUTPUT, messages })

/** The prompt tokens that a refused call would have held. */
function heldIn(answer: FullResponse): number {
  expect(answer.status, answer.text).toBe(403)
  const [, needed] = /"needed":\s*(\d+)/.exec(answer.text) ?? []
  return Number(needed) - 4 * OUTPUT
}

const NAME = 'prompts of several nodes'
describe.skipIf(withoutRedis(NAME)).each(SHARED)('nodes on $name with Redis', (engine) => {
  const shared = nodesOnRedis(engine, configure, patientProgram)
  afterEach(() => shared.server.command(['FLUSHALL']))

  const entries = async (): Promise<string[]> =>
    (await shared.server.command(['KEYS', '*:prompt:*'])) as string[]
  /** Makes a call on the first node, and waits until Redis has its entry. */
  const had = async (said: readonly object[], reported = REPORTED): Promise<string> => {
    await shared.server.command(['FLUSHALL'])
    shared.nodes.upstream.script('m', { kind: 'whole', usage: usageText(reported, 5) })
    expect((await shared.nodes.chat(0, 'ann', ask(said))).status).toBe(200)
    await expect.poll(entries).toHaveLength(1)
    const [name = ''] = await entries()
    return name
  }
  const heldOn = async (node: number, said: readonly object[]): Promise<number> =>
    heldIn(await call(shared.nodes.gateways[node]?.url ?? '', ask(goneOn(said)), { key: 'poor' }))
  const WHOLE = Buffer.byteLength(LONG)

  test('the hold of a continued conversation uses the reported tokens of its previous call, whichever node served that', async () => {
    const said = fresh()
    await had(said)
    // A node that gets no timely answer from Redis holds the bound of the whole prompt.
    await expect.poll(() => heldOn(1, said)).toBeLessThan(REPORTED + APPENDED)
    await expect.poll(() => heldOn(0, said)).toBeLessThan(REPORTED + APPENDED)
  })

  test.each<[string, (entry: string, other: string) => string]>([
    ['fewer tokens', (entry) => entry.replace(/^\d+/, '3000')],
    ['another time', (entry) => entry.replace(/\.\d+\./, '.99999999999999.')],
    ['the entry of another conversation', (_, other) => other],
    ['another tag', (entry) => entry.slice(0, -1) + (entry.endsWith('A') ? 'E' : 'A')],
    ['no tag', (entry) => entry.slice(0, -43)],
    ['rubbish', () => 'rubbish'],
    ['a long text', () => '1'.repeat(1_000_000)],
  ])('an attacker who writes %s into Redis does not lower the hold of a conversation', async (_, forged) => {
    const cheap = await had(fresh(), 3000)
    const other = (await shared.server.command(['GET', cheap])) as string
    const said = fresh()
    const name = await had(said)
    const entry = (await shared.server.command(['GET', name])) as string
    await shared.server.command(['SET', name, forged(entry, other)])
    expect(await heldOn(1, said)).toBeGreaterThan(WHOLE)
    // The node that saw the call does not need Redis.
    expect(await heldOn(0, said)).toBeLessThan(REPORTED + APPENDED)
  })

  test('a damaged entry in Redis, or Redis being unreachable, only makes the hold of a conversation larger', async () => {
    const said = fresh()
    const name = await had(said)
    await shared.server.command(['DEL', name])
    await shared.server.command(['RPUSH', name, 'x'])
    expect(await heldOn(1, said)).toBeGreaterThan(WHOLE)
    const another = fresh()
    await had(another)
    await shared.server.kill()
    expect(await heldOn(1, another)).toBeGreaterThan(WHOLE)
    await shared.server.restart()
  })
})
