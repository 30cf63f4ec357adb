import { Agent } from 'node:http'
import { expect } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { AMPLE, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { ask, retryWhileOverloaded, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** The number of simultaneous calls, and the number that the quota pays for. */
export interface CrowdSize {
  readonly calls: number
  readonly affordable: number
}

/** The tested sizes. */
export const SIZES: readonly CrowdSize[] = [
  { calls: 50, affordable: 10 },
  { calls: 500, affordable: 10 },
  { calls: 2000, affordable: 1 },
]

/** The result of several crowds. */
export interface CrowdReport extends CrowdSize {
  readonly repetitions: number
  /** The median latency in milliseconds of a single refusal while the whole quota is held. */
  readonly refusalMs: number
}

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const MAXIMUM = 1000
const SINGLE_REFUSALS = 5

/** A gateway for simultaneous calls, with the key `crowd` and a key without quota. */
export function crowdFixture(): Promise<Fixture> {
  return startFixture((upstream) => ({
    options: { max_calls: 9000, hold_wait: 0 },
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('crowd'), token('poor', { remain_quota: 1 })], {
        access_token: ANN.accessToken,
      }),
    ],
  }))
}

/**
 * Runs crowds one after the other, alternately streamed and whole, each response with a random cost within
 * its hold. Fails where the number of admitted calls differs from the affordable number, or where the balance
 * is not exactly the quota minus the costs.
 */
export async function crowds(
  fixture: Fixture,
  size: CrowdSize,
  repetitions: number,
  random: () => number,
): Promise<CrowdReport> {
  const database = databaseOf(fixture.gateway.dataDir)
  const refusalsMs: number[] = []
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const request = ask('m', { stream: repetition % 2 === 0, max_tokens: MAXIMUM })
    const hold = await holdOf(fixture, request)
    const quota = Math.floor(hold * (size.affordable + random() * 0.99))
    const { id, used_quota: usedBefore } = database.token('token-crowd')
    const put = await manage(fixture.gateway.url, ANN, 'PUT /api/token/', {
      id,
      unlimited_quota: false,
      remain_quota: quota,
    })
    expect(put.status, put.message).toBe(200)
    // Each crowd uses new connections, because a kept connection may be closed at the moment of its reuse.
    const agent = new Agent({ keepAlive: true, maxSockets: size.calls })
    const cost = await oneCrowd(fixture, size, request, random, agent, refusalsMs)
    agent.destroy()
    const { remain_quota: remain, used_quota: used } = database.token('token-crowd')
    expect([remain, used - usedBefore]).toEqual([quota - cost, cost])
    expect(remain).toBeGreaterThanOrEqual(0)
    expect(database.openHolds()).toEqual([])
  }
  const { quota: left, used_quota: spent } = database.user('ann')
  expect(left + spent).toBe(AMPLE)
  const refusalMs = refusalsMs.toSorted((a, b) => a - b)[refusalsMs.length >> 1] ?? Number.NaN
  return { ...size, repetitions, refusalMs: Number(refusalMs.toFixed(1)) }
}

/** The hold of a call, taken from the refusal of a call that the key cannot pay. */
async function holdOf(fixture: Fixture, request: object): Promise<number> {
  const { text } = await retryWhileOverloaded(() => fixture.chat('poor', request))
  const needed = /(\d+) are needed/.exec(text)?.[1]
  if (needed === undefined) throw new Error(`this was not refused: ${text}`)
  return Number(needed)
}

/** Runs one crowd. Returns the cost of its responses. */
async function oneCrowd(
  fixture: Fixture,
  { calls, affordable }: CrowdSize,
  request: { readonly stream?: unknown },
  random: () => number,
  agent: Agent,
  refusalsMs: number[],
): Promise<number> {
  const { promise: after, resolve: release } = Promise.withResolvers<void>()
  let cost = 0
  fixture.upstream.decide('m', () => {
    const [prompt, completion] = [1 + Math.floor(random() * 5), 1 + Math.floor(random() * MAXIMUM)]
    cost += prompt + 4 * completion
    const usage = usageText(prompt, completion)
    return request.stream === true
      ? { kind: 'stream', events: 2, usage, after }
      : { kind: 'whole', usage, after }
  })
  let refused = 0
  const crowd = Array.from({ length: calls }, async () => {
    const answer = await retryWhileOverloaded(() => fixture.chat('crowd', request, { agent }))
    if (answer.status !== 200) refused++
    return answer
  })
  // After a failure the outcome of the other calls is irrelevant.
  void Promise.allSettled(crowd)
  await expect
    .poll(() => refused + fixture.upstream.received('m').length, { timeout: 120_000, interval: 20 })
    .toBe(calls)
  expect(fixture.upstream.received('m')).toHaveLength(affordable)
  for (let index = 0; index < SINGLE_REFUSALS; index++) {
    const began = performance.now()
    const { status } = await fixture.chat('crowd', request)
    if (status === 429) refusalsMs.push(performance.now() - began)
  }
  release()
  const answers = await Promise.all(crowd)
  const wrong = answers.filter(
    ({ status, text }) => status !== 200 && !(status === 429 && text.includes('"quota_held"')),
  )
  expect(wrong.map(({ status, text }) => `${status} ${text}`)).toEqual([])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(affordable)
  return cost
}
