import type { Link } from '../ipc/link.ts'
import { OwnerPeers } from '../limits/owner-peers.ts'
import { SharedRateCounter } from '../limits/shared-rate-counter.ts'
import { SharedSemaphore } from '../limits/semaphore.ts'
import type { Listener } from '../store/postgres/announcements.ts'
import { type Announcer, ChangeFeed } from './change-feed.ts'
import type { Cluster } from './join-cluster.ts'
import { NodeReports } from './node-reports.ts'

/**
 * Timeout for counting a request in the process that owns the database, which may be busy with a commit to a
 * slow disk.
 */
const WAIT_TIMEOUT_MS = 5_000

/** The worker processes of one machine, from the view of one of them. */
export interface Workers {
  readonly link: Link
  readonly announcer: Announcer
  /** Number of this worker, starting at 1. */
  readonly index: number
  /** Number of workers that are configured. */
  readonly planned: number
  /** Number of workers that run. */
  readonly count: () => number
  /** Whether all configured workers take calls. */
  readonly isComplete: () => boolean
}

/**
 * Connects the workers that share one machine's database. The process that owns the database counts their
 * limits.
 */
export function joinThroughOwner({ link, announcer, count }: Workers, node: string): Cluster {
  const peers = new OwnerPeers(link, count)
  const changes = new ChangeFeed(node, announcer)
  const reports = new NodeReports(node, announcer, { count: () => peers.nodes, knows: () => true })
  const rateCounter = new SharedRateCounter(
    peers,
    () => {},
    () => performance.now(),
    WAIT_TIMEOUT_MS,
  )
  const semaphore = new SharedSemaphore(peers)
  return {
    rateCounter,
    semaphore,
    changes,
    reports,
    limitAnnouncer: announcer,
    isRedisReachable: undefined,
    async close() {
      await Promise.all([rateCounter.close(), semaphore.close()])
      changes.close()
      reports.close()
    },
  }
}

/** Announces texts to all workers of one machine, through the process that owns their database. */
export class OwnerAnnouncer implements Announcer {
  readonly #link: Link
  readonly #listeners = new Set<Listener>()

  constructor(link: Link) {
    this.#link = link
    link.on('announce', (text: string) => {
      for (const listener of this.#listeners) listener.received(text)
    })
  }

  announce(text: string): Promise<void> {
    this.#link.send('announce', text)
    return Promise.resolve()
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    listener.connected?.()
    return () => void this.#listeners.delete(listener)
  }
}
