import { setTimeout as sleep } from 'node:timers/promises'
import type { Ground } from '../equipment/ground.ts'
import type { RunningGateway } from '../equipment/gateway.ts'
import { statusOn } from '../equipment/port.ts'

/** Faults of nodes and servers while calls run; repairs everything at the end. */
export type Mischief = (ground: Ground, random: () => number, isOver: () => boolean) => Promise<void>

/** Share of kills that hit a starting node. */
const UNBORN = 0.2

/**
 * Kills a node every 0.4 to 1.3 s, as long as another one is up; the killed node is started again at once,
 * and sometimes killed during its start.
 */
export const killNodes: Mischief = async ({ fleet }, random, isOver) => {
  const starting = new Map<RunningGateway, Promise<unknown>>()
  while (!isOver()) {
    await sleep(400 + random() * 900)
    const up = fleet.nodes.filter((node) => !starting.has(node))
    const among = random() < UNBORN ? [...starting.keys()] : up.length > 1 ? up : []
    const node = among[Math.floor(random() * among.length)]
    if (!node) continue
    await node.kill()
    const started = node.restart().catch(() => revive(node))
    starting.set(node, started)
    const isUp = (): void => {
      if (starting.get(node) === started) starting.delete(node)
    }
    void started.then(isUp, isUp)
  }
  await Promise.all(starting.values())
}

/** Starts a node that is down, as a service manager does: repeatedly, until it is up. */
export async function revive(node: RunningGateway): Promise<void> {
  while ((await statusOn(node.port, '/readyz')) !== 200) {
    if (node.isRunning) await sleep(50)
    else await node.restart().catch(() => sleep(200))
  }
}

/** Crashes PostgreSQL every `everyMs`, and starts it again `downMs` later. */
export function crashPostgres(everyMs: number, downMs: number): Mischief {
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
export function pullPostgres(afterMs: number, forMs: number): Mischief {
  return async ({ postgresCable }) => {
    await sleep(afterMs)
    postgresCable.hold()
    await sleep(forMs)
    postgresCable.release()
  }
}

/** Ends one connection to PostgreSQL every 100 ms, on the server's side, as failovers and operators do. */
export const endConnections: Mischief = async ({ postgres }, _, isOver) => {
  while (!isOver()) {
    await sleep(100)
    await postgres.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where pid <> pg_backend_pid() and backend_type = 'client backend' order by random() limit 1`,
    )
  }
}

/** Faults of Redis in turn: all data deleted, killed, disconnected, asleep for five seconds. */
export const troubleRedis: Mischief = async ({ redis, redisCable }, _, isOver) => {
  const troubles = [
    () => redis.command(['FLUSHALL']),
    async () => {
      await redis.kill()
      await sleep(1000)
      await redis.restart()
    },
    async () => {
      redisCable.hold()
      await sleep(2000)
      redisCable.release()
    },
    () => redis.command(['DEBUG', 'SLEEP', '5']),
  ]
  for (let next = 0; !isOver(); next++) {
    await sleep(500)
    await troubles[next % troubles.length]?.()
  }
}
