import { Agent } from 'node:http'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { AMPLE, channel, priced, ROOT, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { randomFrom } from '../fixtures/random.ts'
import { ask, retryWhileOverloaded, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { keyOf, createToken, type ShownToken } from '../fixtures/tokens.ts'
import { byTier } from '../runner/tier.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const CHARGES = byTier(400, 1_000)
const CLIENTS = 30
/** Changes per second. */
const PACE = 20
const QUOTA = 10_000_000
const TO_DELETE = 8
/** Minimum number of keys deleted meanwhile, however slow the machine is. */
const DELETED = 3
const TOP_UP = 1234

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [], { access_token: ANN.accessToken })],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

interface KeyOfTest {
  readonly id: number
  readonly name: string
  readonly key: string
  deleted: boolean
}

async function keyNamed(name: string): Promise<KeyOfTest> {
  const { id } = await createToken(fixture.gateway.url, ANN, name, { remain_quota: QUOTA })
  return { id, name, key: await keyOf(fixture.gateway.url, ANN, id), deleted: false }
}

test(`${CHARGES} charges during changes of quotas and keys leave each key with its last set quota minus the later charges`, {
  timeout: 300_000,
}, async () => {
  const random = randomFrom(SEED)
  console.info(`SEED=${SEED}`)
  const busy = await keyNamed('busy')
  const switched = await keyNamed('switched')
  const doomed: KeyOfTest[] = []
  for (let index = 0; index < TO_DELETE; index++) doomed.push(await keyNamed(`doomed${index}`))
  const keys = [busy, switched, ...doomed]
  let cost = 0
  fixture.upstream.decide('m', () => {
    const completion = 1 + Math.floor(random() * 50)
    cost += 10 + 4 * completion
    return { kind: 'stream', events: 3, paceMs: 10, usage: usageText(10, completion) }
  })

  let charged = 0
  const refusals = new Set<string>()
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  const client = async (): Promise<void> => {
    while (charged < CHARGES || doomed.filter(({ deleted }) => deleted).length < DELETED) {
      const { key, deleted } = keys[Math.floor(random() * keys.length)] ?? busy
      const answer = await retryWhileOverloaded(() =>
        fixture.chat(key, ask('m', { stream: true, max_tokens: 50 }), { agent }),
      )
      if (answer.status === 200) charged += 1
      else refusals.add(answer.json().error.code as string)
      // Once a deletion was answered, no call is admitted.
      if (deleted) expect(answer.status).toBe(401)
    }
  }

  const send = async <Data>(request: `${'PUT' | 'POST' | 'DELETE'} /${string}`, body?: object, who = ANN) => {
    const answer = await manage<Data>(fixture.gateway.url, who, request, body)
    expect(answer.status, answer.message).toBe(200)
    return answer.data
  }
  let lastSet = { remain_quota: QUOTA, used_quota: 0 }
  let toppedUp = 0
  const changes: (() => Promise<void>)[] = [
    async () => {
      const remain_quota = QUOTA + Math.floor(random() * QUOTA)
      lastSet = await send<ShownToken>('PUT /api/token/', { id: busy.id, remain_quota })
      expect(lastSet.remain_quota).toBe(remain_quota)
    },
    async () => void (await send('PUT /api/token/?status_only=1', { id: switched.id, status: 2 })),
    async () => void (await send('PUT /api/token/?status_only=1', { id: switched.id, status: 1 })),
    async () => {
      const change = { id: 2, action: 'add_quota', mode: 'add', value: TOP_UP }
      await send('POST /api/user/manage', change, ROOT_ACCOUNT)
      toppedUp += TOP_UP
    },
  ]
  const end = { isHere: false }
  const manager = async (): Promise<number> => {
    let count = 0
    for (const alive = [...doomed]; !end.isHere; count++) {
      const at = performance.now()
      await changes[count % changes.length]?.()
      const isTime = count % 7 === 6
      if (isTime && alive.length > 3) {
        // Alternately two at once, and one alone.
        const gone = alive.splice(0, count % 2 === 0 ? 2 : 1)
        if (gone.length > 1) await send('POST /api/token/batch', { ids: gone.map(({ id }) => id) })
        else await send(`DELETE /api/token/${gone[0]?.id}`)
        for (const key of gone) key.deleted = true
      }
      await sleep(Math.max(0, 1000 / PACE - (performance.now() - at)))
    }
    return count
  }

  const managing = manager()
  try {
    await Promise.all(Array.from({ length: CLIENTS }, client))
  } finally {
    end.isHere = true
    agent.destroy()
  }
  const count = await managing
  console.info(`${charged} charges, ${count} changes, refusals: ${[...refusals].join(', ')}`)

  const row = database.token('busy')
  expect(row.remain_quota).toBe(lastSet.remain_quota - (row.used_quota - lastSet.used_quota))
  // The balance in the gateway's memory equals that of the row.
  const tooMuch = await fixture.chat(busy.key, ask('m', { max_tokens: 10_000_000 }))
  expect(tooMuch.json().error.message).toContain(`: ${row.remain_quota} remain`)
  for (const { name } of [switched, ...doomed]) {
    const { remain_quota: remain, used_quota: used } = database.token(name)
    expect([name, remain + used]).toEqual([name, QUOTA])
  }
  for (const { id, deleted, key } of doomed) {
    const found = await manage(fixture.gateway.url, ANN, `GET /api/token/${id}`)
    expect(found.status).toBe(deleted ? 404 : 200)
    expect((await fixture.chat(key, ask('m', { stream: true }))).status).toBe(deleted ? 401 : 200)
  }
  expect(doomed.filter(({ deleted }) => deleted).length).toBeGreaterThanOrEqual(DELETED)
  const { quota, used_quota: used } = database.user('ann')
  expect(quota + used).toBe(AMPLE + toppedUp)
  expect(used).toBe(cost)
  expect(database.usage().reduce((sum, each) => sum + each.quota, 0)).toBe(cost)
  expect([...refusals].filter((code) => code !== 'token_deleted' && code !== 'token_disabled')).toEqual([])
  expect(database.openHolds()).toEqual([])
})
