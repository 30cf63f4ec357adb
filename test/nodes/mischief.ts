import { setTimeout as sleep } from 'node:timers/promises'
import type { Ground } from '../equipment/ground.ts'
import type { RunningGateway } from '../equipment/gateway.ts'
import { statusOn } from '../equipment/port.ts'

/**
 * What is done to nodes and servers while calls run: until it is over, and then everything is put right
 * again.
 */
export type Mischief = (ground: Ground, random: () => number, isOver: () => boolean) => Promise<void>

/** Of those that are killed, how many are still starting. */
const UNBORN = 0.2

/**
 * kill -9 of a node every 0.4 to 1.3 s, for as long as another one is up; what was killed is started again at
 * once, and now and then killed in the middle of that.
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

/** Starts a node that is down, as a service manager does: again and again, until it is up. */
export async function revive(node: RunningGateway): Promise<void> {
  while ((await statusOn(node.port, '/readyz')) !== 200) {
    if (node.isRunning) await sleep(50)
    else await node.restart().catch(() => sleep(200))
  }
}

/** PostgreSQL crashes every `everyMs`, and is started again `downMs` later. */
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

/** The cable to PostgreSQL is pulled once, after `afterMs`, for `forMs`. */
export function pullPostgres(afterMs: number, forMs: number): Mischief {
  return async ({ postgresCable }) => {
    await sleep(afterMs)
    postgresCable.hold()
    await sleep(forMs)
    postgresCable.release()
  }
}

/** Every 100 ms, one connection to PostgreSQL is ended by the server, as failovers and operators do. */
export const endConnections: Mischief = async ({ postgres }, _, isOver) => {
  while (!isOver()) {
    await sleep(100)
    await postgres.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where pid <> pg_backend_pid() and backend_type = 'client backend' order by random() limit 1`,
    )
  }
}

/**
 * One after the other: everything in Redis is deleted, it is killed, its cable is pulled, it sleeps for five
 * seconds.
 */
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
