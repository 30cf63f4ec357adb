import { afterAll, beforeAll, expect, onTestFinished, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type FullResponse, type Body, call, type CallOptions } from '../fixtures/client.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { type Configuration, ROOT } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { BANKS } from '../ledger/bank-fixture.ts'
import type { Engine, OnEnd, TestDatabase } from '../stores/engines.ts'

const GATEWAY_SECRETS = deriveSecrets(GATEWAY_SECRET)

/** PostgreSQL, where there is a server. */
export const SHARED: readonly Engine[] = BANKS

/** Several gateways on one database with one upstream. */
export interface Nodes {
  readonly upstream: ScriptedUpstream
  readonly gateways: readonly RunningGateway[]
  readonly database: TestDatabase
  /** A chat completion through the gateway of that index. */
  readonly chat: (node: number, key: string, body: Body, options?: CallOptions) => Promise<FullResponse>
  /** A token's balance, by its name. */
  readonly token: (
    name: string,
  ) => Promise<{ readonly remain: number; readonly used: number; readonly leased: number }>
  /** Starts another gateway on the same database. */
  readonly join: () => Promise<RunningGateway>
}

interface NodesOptions {
  readonly env?: Readonly<Record<string, string>> | undefined
  /** When the gateways are stopped; after the test by default. */
  readonly onEnd?: OnEnd
  /** Resolves to the folder of the gateways' program, where it differs from that of the other tests. */
  readonly program?: (() => Promise<string>) | undefined
}

/** Starts `count` gateways, the first before the others. */
export async function setNodes(
  engine: Engine,
  count: number,
  configure: (upstream: ScriptedUpstream) => Configuration,
  { env = {}, onEnd = onTestFinished, program }: NodesOptions = {},
): Promise<Nodes> {
  const root = await program?.()
  const database = await (env['GATEWAY_SECRET'] === undefined
    ? bankOf(engine, onEnd)
    : engine.database(onEnd))
  const upstream = await startUpstream()
  onEnd(() => upstream.stop())
  const config = configure(upstream)
  const start = async (): Promise<RunningGateway> => {
    const gateway = await startGateway({
      config,
      env: { DATABASE_URL: database.place, ...env },
      ...(root !== undefined && { root }),
    })
    onEnd(() => gateway.discard())
    return gateway
  }
  const gateways: RunningGateway[] = []
  const join = async (): Promise<RunningGateway> => {
    const gateway = await start()
    gateways.push(gateway)
    return gateway
  }
  if (count > 0) await join()
  const others = Array.from({ length: Math.max(0, count - 1) }, start)
  // Each is stopped at the end, even if another one has failed to start.
  await Promise.allSettled(others)
  gateways.push(...(await Promise.all(others)))
  return {
    upstream,
    gateways,
    database,
    join,
    chat: (node, key, body, options) => call(gateways[node]?.url ?? '', body, { key, ...options }),
    async token(name) {
      const [row] = await database.sql(
        `select remain_quota as remain, used_quota as used, leased from tokens where name = '${name}'`,
      )
      return row as never
    },
  }
}

/** A database that nodes find ready; each has its own name in Redis, which several may share. */
async function bankOf(engine: Engine, onEnd: OnEnd): Promise<TestDatabase> {
  const database = await engine.prepared({ secrets: GATEWAY_SECRETS, onEnd })
  await database.sql('update store_identity set bank = gen_random_uuid()::text')
  return database
}

const PATIENCE = { timeout: 60_000, interval: 500 }

/** Resolves once each of these gateways knows all others, which takes a moment after the start. */
export async function untilAcquainted(gateways: readonly RunningGateway[]): Promise<void> {
  const account = { id: ROOT.id, accessToken: ROOT.access_token }
  for (const { url } of gateways) {
    const others = async (): Promise<number> => {
      const request = 'GET /api/channel/health?nodes=all'
      const { data } = await manage<{ others: unknown[] }>(url, account, request)
      return data.others.length
    }
    await vi.waitFor(async () => expect(await others()).toBe(gateways.length - 1), PATIENCE)
  }
}

/** Several gateways for all tests of the block that calls it; set from its first `beforeAll` on. */
export function sharedNodes(
  engine: Engine,
  count: number,
  configure: (upstream: ScriptedUpstream) => Configuration,
  program?: NodesOptions['program'],
): { readonly nodes: Nodes } {
  const shared = {} as { nodes: Nodes }
  const onEnd = afterAllTests()
  beforeAll(async () => {
    shared.nodes = await setNodes(engine, count, configure, { onEnd, program })
  })
  return shared
}

/** Two gateways on one Redis, for the tests of the block that calls it; set from their first `beforeAll` on. */
export function nodesOnRedis(
  engine: Engine,
  configure: (upstream: ScriptedUpstream) => Configuration,
  program?: NodesOptions['program'],
): { readonly server: RedisServer; readonly nodes: Nodes } {
  const shared = {} as { server: RedisServer; nodes: Nodes }
  const onEnd = afterAllTests()
  beforeAll(async () => {
    shared.server = await startRedisServer()
    onEnd(() => shared.server.stop())
    const env = { REDIS_URL: shared.server.url }
    shared.nodes = await setNodes(engine, 2, configure, { env, onEnd, program })
  })
  return shared
}

/** Registers what the tests of the block that calls it end with, the last first. */
function afterAllTests(): OnEnd {
  const ends: Parameters<OnEnd>[0][] = []
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })
  return (end) => void ends.push(end)
}
