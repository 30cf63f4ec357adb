import type { Configuration } from './configuration.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { type OwnPostgres, startOwnPostgres } from './own-postgres.ts'
import { type RedisServer, startRedisServer } from './redis-server.ts'
import { type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

/** The nodes of a cluster, and their configuration. */
export interface ClusterPlan {
  readonly nodes: number
  /** The configuration of all nodes; it may refer to the upstream's lanes. */
  readonly configure: (upstream: ScriptedUpstream) => Configuration
  readonly env?: Readonly<Record<string, string>>
  /** If false, nodes connect to the servers directly, without the overhead of fault proxies. */
  readonly hasProxies?: boolean
  /** The program's folder, if it is not the repository's. */
  readonly root?: string
}

/** Nodes, the servers that they share, and an upstream. Each server is behind a fault proxy. */
export interface Cluster {
  readonly upstream: ScriptedUpstream
  readonly postgres: OwnPostgres
  readonly postgresProxy: FaultProxy
  readonly redis: RedisServer
  readonly redisProxy: FaultProxy
  readonly fleet: Fleet
  clear(): Promise<void>
}

/** Starts everything; the caller disposes of it. */
export async function startCluster({
  nodes,
  configure,
  env,
  hasProxies: hasCables = true,
  root,
}: ClusterPlan): Promise<Cluster> {
  await using laid = new AsyncDisposableStack()
  const upstream = laid.adopt(await startUpstream(), (server) => server.stop())
  const postgres = laid.adopt(await startOwnPostgres(), (server) => server.stop())
  const postgresCable = laid.adopt(await startFaultProxy(postgres.port), (proxy) => proxy.stop())
  const redis = laid.adopt(await startRedisServer(), (server) => server.stop())
  const redisCable = laid.adopt(await startFaultProxy(redis.port), (proxy) => proxy.stop())
  const fleet = laid.adopt(
    await startFleet(nodes, {
      config: configure(upstream),
      env: {
        LOG_LEVEL: 'warn',
        DATABASE_URL: hasCables ? throughProxy(postgresCable, postgres.url) : postgres.url,
        REDIS_URL: hasCables ? throughProxy(redisCable, redis.url) : redis.url,
        ...env,
      },
      ...(root === undefined ? {} : { root }),
    }),
    (started) => started.discard(),
  )
  const everything = laid.move()
  return {
    upstream,
    postgres,
    postgresProxy: postgresCable,
    redis,
    redisProxy: redisCable,
    fleet,
    clear: () => everything.disposeAsync(),
  }
}

function throughProxy({ port }: FaultProxy, to: string): string {
  const url = new URL(to)
  url.host = `127.0.0.1:${port}`
  return url.href
}
