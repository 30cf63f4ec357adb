import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../fixtures/cluster.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'
import { statusOn } from '../fixtures/port.ts'

/** Faults of nodes and servers while calls run; repairs everything at the end. */
export type FaultInjection = (cluster: Cluster, random: () => number, isOver: () => boolean) => Promise<void>

/** The share of kills that hit a starting node. */
const STARTING_SHARE = 0.2

/**
 * Kills a node every 0.4 to 1.3 s while another one is running; the killed node is restarted at once, and
 * sometimes killed during its start.
 */
export const killNodes: FaultInjection = async ({ fleet }, random, isOver) => {
  const starting = new Map<RunningGateway, Promise<unknown>>()
  while (!isOver()) {
    await sleep(400 + random() * 900)
    const up = fleet.nodes.filter((node) => !starting.has(node))
    const among = random() < STARTING_SHARE ? [...starting.keys()] : up.length > 1 ? up : []
    const node = among[Math.floor(random() * among.length)]
    if (!node) continue
    await node.kill()
    const started = node.restart().catch(() => restartUntilUp(node))
    starting.set(node, started)
    const isUp = (): void => {
      if (starting.get(node) === started) starting.delete(node)
    }
    void started.then(isUp, isUp)
  }
  await Promise.all(starting.values())
}

/** Starts a node that is down, as a service manager does: repeatedly, until it is up. */
export async function restartUntilUp(node: RunningGateway): Promise<void> {
  while ((await statusOn(node.port, '/readyz')) !== 200) {
    if (node.isRunning) await sleep(50)
    else await node.restart().catch(() => sleep(200))
  }
}

/** Crashes PostgreSQL every `everyMs`, and starts it again `downMs` later. */
export function crashPostgres(everyMs: number, downMs: number): FaultInjection {
  return async ({ postgres }, _, isOver) => {
    while (!isOver()) {
      await sleep(everyMs)
      if (isOver()) return
      await postgres.crash()
      await sleep(downMs)
      await postgres.start()
    }
  }
}

/** Cuts the connection to PostgreSQL once, after `afterMs`, for `forMs`. */
export function disconnectPostgres(afterMs: number, forMs: number): FaultInjection {
  return async ({ postgresProxy: postgresCable }) => {
    await sleep(afterMs)
    postgresCable.disconnect()
    await sleep(forMs)
    postgresCable.reconnect()
  }
}

/** Ends one connection to PostgreSQL every 100 ms, on the server's side, as failovers and operators do. */
export const endConnections: FaultInjection = async ({ postgres }, _, isOver) => {
  while (!isOver()) {
    await sleep(100)
    await postgres.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where pid <> pg_backend_pid() and backend_type = 'client backend' order by random() limit 1`,
    )
  }
}

/** Faults of Redis in turn: all data deleted, killed, disconnected, suspended for five seconds. */
export const injectRedisFaults: FaultInjection = async ({ redis, redisProxy: redisCable }, _, isOver) => {
  const troubles = [
    () => redis.command(['FLUSHALL']),
    async () => {
      await redis.kill()
      await sleep(1000)
      await redis.restart()
    },
    async () => {
      redisCable.disconnect()
      await sleep(2000)
      redisCable.reconnect()
    },
    () => redis.command(['DEBUG', 'SLEEP', '5']),
  ]
  for (let next = 0; !isOver(); next++) {
    await sleep(500)
    await troubles[next % troubles.length]?.()
  }
}
