import type { NodeFile, NodeWrites } from '../store/node-file.ts'
import type { Rows, Store } from '../store/store.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'

const OF_THE_FILE: ReadonlySet<string> = new Set<keyof NodeWrites>([
  'hold',
  'growHold',
  'markProgress',
  'settle',
  'recover',
])

/** Reads that show no charge: they need not wait until what was settled here is counted. */
const WITHOUT_CHARGES: ReadonlySet<string> = new Set([
  'countUsers',
  'credentials',
  'revealKey',
  'revealKeys',
  'storedConfiguration',
  'tokenByKeyHash',
  'userByAccessToken',
  'userBySession',
])

/** What the store is made of beside the rows, where calls are made on it. */
export interface NodePart {
  readonly file: NodeFile
  /** Hears that a call was settled. */
  onSettled(): void
  /** Resolves when what was settled here is in the rows. */
  flush(): Promise<void>
}

/**
 * The store of one node among many: rows in the shared database, and what each call writes in the node's own
 * file. A read that shows what was charged shows all that this node has charged. Without a part of its own it
 * is the store of a command, on which no calls are made.
 */
export function sharedStore(rows: Rows, own?: NodePart): Store {
  const write = async (name: string, input: unknown): Promise<unknown> => {
    if (name === 'loadAccount') {
      await own?.flush()
      return rows.read('accountOfToken', input as never)
    }
    // Old rows of the log go with their partition.
    if (name === 'prune') return { rows: 0, tookMs: 0 }
    if (!OF_THE_FILE.has(name)) return rows.write(name as never, ...([input] as never))
    if (!own) throw new StoreUnavailable('no calls are made on this store')
    const result = await own.file.write(name as keyof NodeWrites, ...([input] as never))
    if (name === 'settle') own.onSettled()
    return result
  }
  return {
    async read(name, ...input) {
      if (own && !WITHOUT_CHARGES.has(name)) await own.flush()
      return rows.read(name, ...input)
    },
    write: (name, ...[input]) => write(name, input) as never,
    get queued() {
      return own?.file.queued ?? 0
    },
    failed: own?.file.failed ?? new Promise(() => {}),
    async close() {
      await rows.close()
      await own?.file.close()
    },
  }
}
