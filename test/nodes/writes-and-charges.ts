import { setTimeout as sleep } from 'node:timers/promises'
import { type Account, manage } from '../fixtures/account.ts'
import { auditBank } from '../fixtures/bank.ts'
import { call } from '../fixtures/client.ts'
import { channel, type Configuration, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'
import type { ShownPage } from '../fixtures/tokens.ts'
import { type ObservedCall, serveTraffic, startTraffic, TRAFFIC_MODEL } from '../fixtures/traffic.ts'
import { historyOf, keepHistory, type TokenChange } from './token-history.ts'

const ANN: Account = { id: 2, accessToken: 'the-access-token-of-ann' }
const AMPLE = 1_000_000_000
/** Tokens that are deleted during the run, singly and two at a time. */
const TO_DELETE = Array.from({ length: 12 }, (_, index) => `doomed${index}`)
const CLIENTS = 12

/** Number of nodes, and the minimum numbers of calls and writes. */
export interface WritesPlan {
  readonly nodes: number
  readonly charges: number
  readonly writes: number
  readonly seed: number
}

/** The result of writes beside charges. */
export interface WritesReport {
  /** The broken promises that the auditor found. */
  readonly broken: readonly string[]
  readonly complete: number
  readonly writes: number
  readonly perSecond: number
  /** The quotas set on one token, in order, and the changes of its row. */
  readonly set: readonly number[]
  readonly ofSet: readonly TokenChange[]
  /** The changes of the row of the token that was disabled and enabled. */
  readonly ofSwitched: readonly TokenChange[]
  readonly ofDoomed: readonly (readonly TokenChange[])[]
  /** Statuses for the keys of deleted tokens a second later, on each node. */
  readonly afterDeletion: readonly number[]
  /** Final balance of the token whose quota was set. */
  readonly left: number
}

function configuration(upstream: ScriptedUpstream): Configuration {
  const off = { requests: 0 }
  return {
    rate_limits: { global: off, search: off, critical: off },
    models: serveTraffic(upstream),
    channels: [channel(TRAFFIC_MODEL, upstream.baseUrl(TRAFFIC_MODEL))],
    users: [
      ROOT,
      user(
        ANN.id,
        'ann',
        ['set', 'switched', ...TO_DELETE].map((key) => token(key, { remain_quota: AMPLE })),
        { access_token: ANN.accessToken, quota: AMPLE },
      ),
    ],
  }
}

/**
 * Makes calls on any node while quotas are set and tokens disabled, enabled and deleted, twenty times a
 * second.
 */
export async function writeWhileCharging(plan: WritesPlan): Promise<WritesReport> {
  const { nodes, seed } = plan
  const random = randomFrom(seed)
  const cluster = await startCluster({ nodes, configure: configuration })
  try {
    await keepHistory(cluster.postgres)
    return await run(cluster, plan, random)
  } finally {
    await cluster.clear()
  }
}

async function run(cluster: Cluster, plan: WritesPlan, random: () => number): Promise<WritesReport> {
  const { urls } = cluster.fleet
  const seen: ObservedCall[] = []
  const anyUrl = (): string => urls[Math.floor(random() * urls.length)] ?? ''
  const ids = await idsOfTokens(anyUrl())
  const idOf = (key: string): number => ids.get(`token-${key}`) ?? 0
  const doomed = [...TO_DELETE]
  const set: number[] = []
  const afterDeletion: Promise<number[]>[] = []
  let count = 0
  const write = async (request: Parameters<typeof manage>[2], body?: object): Promise<void> => {
    const { status, message } = await manage(anyUrl(), ANN, request, body)
    count += 1
    if (status === 200) return
    const said = cluster.fleet.nodes.map((node) => node.logs().slice(-2000)).join('\n')
    throw new Error(`${request} answered ${status}: ${message}\n${said}`)
  }
  const deleteSome = async (): Promise<void> => {
    const keys = doomed.splice(0, random() < 0.5 ? 1 : 2)
    const gone = keys.map(idOf)
    if (gone.length === 0) return
    if (gone.length === 1) await write(`DELETE /api/token/${gone[0]}`)
    else await write('POST /api/token/batch', { ids: gone })
    afterDeletion.push(sleep(1000).then(() => statusesOf(keys, urls)))
  }
  const setSome = async (): Promise<void> => {
    const quota = 100_000 + Math.floor(random() * 900_000)
    set.push(quota)
    await write('PUT /api/token/', { id: idOf('set'), remain_quota: quota })
  }
  const switchSome = async (): Promise<void> => {
    const id = idOf('switched')
    await write('PUT /api/token/?status_only=1', { id, status: 2 })
    await write('PUT /api/token/?status_only=1', { id, status: 1 })
  }

  const keys = ['set', 'set', 'switched', ...TO_DELETE]
  const clientsEach = Math.ceil(CLIENTS / urls.length)
  const startMs = performance.now()
  const traffic = startTraffic({ urls, clientsEach, keys, random, observations: seen })
  const complete = (): number =>
    seen.filter((observation) => observation.complete && observation.status === 200).length
  const isOver = (): boolean => complete() >= plan.charges && count >= plan.writes
  // Each lane in order; together they write twenty times a second, if the nodes keep up.
  await Promise.all([
    atPace(10, setSome, isOver),
    atPace(4, switchSome, isOver),
    atPace(2, deleteSome, isOver),
  ])
  const perSecond = count / ((performance.now() - startMs) / 1000)
  await traffic.stop()
  const statuses = await Promise.all(afterDeletion)
  await cluster.fleet.stop()
  const { broken } = await auditBank(cluster, seen, {
    tokens: new Map(['switched', ...TO_DELETE].map((key) => [`token-${key}`, AMPLE])),
    users: new Map([['ann', AMPLE]]),
  })
  const ofSet = await historyOf(cluster.postgres, idOf('set'))
  const [row] = await cluster.postgres.sql<{ remain_quota: number }>(
    `select remain_quota from tokens where id = ${idOf('set')}`,
  )
  return {
    broken,
    complete: complete(),
    writes: count,
    perSecond,
    set,
    ofSet,
    ofSwitched: await historyOf(cluster.postgres, idOf('switched')),
    ofDoomed: await Promise.all(TO_DELETE.map((key) => historyOf(cluster.postgres, idOf(key)))),
    afterDeletion: statuses.flat(),
    left: row?.remain_quota ?? Number.NaN,
  }
}

async function atPace(perSecond: number, work: () => Promise<void>, isOver: () => boolean): Promise<void> {
  for (let dueMs = performance.now(); !isOver(); dueMs += 1000 / perSecond) {
    await sleep(Math.max(0, dueMs - performance.now()))
    await work()
  }
}

async function idsOfTokens(url: string): Promise<Map<string, number>> {
  const { data } = await manage<ShownPage>(url, ANN, 'GET /api/token/?page_size=100')
  return new Map(data.items.map(({ name, id }) => [name, id]))
}

async function statusesOf(keys: readonly string[], urls: readonly string[]): Promise<number[]> {
  const asked = keys.flatMap((key) => urls.map((url) => call(url, ask(TRAFFIC_MODEL), { key })))
  return (await Promise.all(asked)).map(({ status }) => status)
}
