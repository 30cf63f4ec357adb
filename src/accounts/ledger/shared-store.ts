import type { AccountName } from '../../store/bank.ts'
import type { NodeFile, NodeWrites } from '../../store/node-file.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { HeldSum } from '../../store/operations/held-sums.ts'
import type { RowStore, Store } from '../../store/store.ts'
import { ProvenanceOutbox } from './provenance-outbox.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'

const NODE_FILE_WRITES: ReadonlySet<string> = new Set<keyof NodeWrites>([
  'hold',
  'growHold',
  'markProgress',
  'parkHold',
  'parkedHolds',
  'probe',
  'releaseHold',
  'settle',
  'recover',
])

/** Reads whose results contain no charges. They need not wait until this node has reported its charges. */
const READS_WITHOUT_CHARGES: ReadonlySet<string> = new Set<Parameters<RowStore['read']>[0]>([
  'hasAlertState',
  'findPendingAlerts',
  'auditEntriesBefore',
  'auditPage',
  'countUsers',
  'backgroundOutcomes',
  'batchPage',
  'credentials',
  'findInvitation',
  'findKept',
  'hasBcryptPasswords',
  'hasImportedKeys',
  'hasKept',
  'identitiesOf',
  'keysOfKind',
  'lapsedContents',
  'listInvitations',
  'listKept',
  'liveSession',
  'readKeptPart',
  'readBytes',
  'reasoningOrigins',
  'responseChain',
  'responseFacts',
  'revealKey',
  'revealKeys',
  'secretState',
  'sessionsOf',
  'storedConfiguration',
  'tokenByKeyHash',
  'userByAccessToken',
  'userByIdentity',
])

/** What the store of a node that serves calls needs besides the shared rows. */
export interface NodeStore {
  readonly file: NodeFile
  /** Called after each settlement; this node then reports the charge. */
  onSettled(): void
  /** Resolves when the shared rows contain all settlements of this node. */
  flush(): Promise<void>
  /** Quota units of an account that this node's open holds reserve. */
  held(account: AccountName): number
}

/**
 * Store of one node in a cluster: rows in the shared database, and writes of calls in the node's own file. If
 * a settlement records which provider account made the response, it resolves once other nodes can see that,
 * or the shared database is unreachable. Before a read that shows charges, this node's charges are reported.
 * Without `own` it is the store of a command-line tool, which serves no calls.
 */
export function sharedStore(rows: RowStore, own?: NodeStore): Store {
  const provenance = own && new ProvenanceOutbox(own.file, rows)
  const write = async (name: string, input: unknown): Promise<unknown> => {
    if (name === 'loadAccount') {
      await own?.flush()
      return rows.read('accountOfToken', input as never)
    }
    // In the shared database, partitions of old usage rows are dropped instead.
    if (name === 'prune') return { rows: 0, tookMs: 0 }
    if (!NODE_FILE_WRITES.has(name)) return rows.write(name as never, ...([input] as never))
    if (!own) throw new StoreUnavailable('no calls are made on this store')
    const result = await own.file.write(name as keyof NodeWrites, ...([input] as never))
    if (name === 'settle') {
      own.onSettled()
      if ((input as SettledCall).provenance) await provenance?.share()
    }
    return result
  }
  return {
    async read(name, ...input) {
      if (name === 'heldOnAccounts') {
        const { accounts } = input[0] as { readonly accounts: readonly AccountName[] }
        return (await heldByAll(rows, own, accounts)) as never
      }
      if (own && !READS_WITHOUT_CHARGES.has(name)) await own.flush()
      return rows.read(name, ...input)
    },
    write: (name, ...[input]) => write(name, input) as never,
    get queued() {
      return own?.file.queued ?? 0
    },
    failed: own?.file.failed ?? new Promise(() => {}),
    async close() {
      await provenance?.close()
      await rows.close()
      await own?.file.close()
    },
  }
}

/** The sums of all open holds on these accounts; the holds of other nodes are as last reported. */
async function heldByAll(
  rows: RowStore,
  own: NodeStore | undefined,
  accounts: readonly AccountName[],
): Promise<HeldSum[]> {
  const reported = await rows.read('heldByNodes', { accounts, except: own?.file.node ?? '' })
  const elsewhere = new Map(reported.map(({ account, held }) => [account, held]))
  return accounts.map((account) => ({
    account,
    held: (elsewhere.get(account) ?? 0) + (own?.held(account) ?? 0),
  }))
}
