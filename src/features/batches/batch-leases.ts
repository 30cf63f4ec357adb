import type { RowStore } from '../../store/store.ts'
import type { Batch } from './batch.ts'

/** Milliseconds after its death for which the batches of a node are its own. */
const LEASE_MS = 90_000
/** Milliseconds after which a lease that no node has renewed is removed. */
const MAX_LEASE_MS = 400 * 86_400_000

/** Services that leases need. */
export interface LeaseServices {
  readonly rows: Pick<RowStore, 'read' | 'write'>
  /** Name of this node. */
  readonly node: string
}

type LeasedBatch = Pick<Batch, 'id' | 'userId'>

/** Takes the lease of a batch, unless another node has it. */
export async function claimBatch({ rows, node }: LeaseServices, batch: LeasedBatch): Promise<boolean> {
  const nowMs = Date.now()
  const state = await rows.write('claimCall', {
    lookup: lookupOf(batch),
    userId: batch.userId,
    fingerprint: '',
    claim: node,
    node,
    nowMs,
    leaseMs: LEASE_MS,
    expiresMs: nowMs + MAX_LEASE_MS,
  })
  return state === 'claimed'
}

/** Renews leases of this node. */
export function renewBatches({ rows, node }: LeaseServices, batches: readonly LeasedBatch[]): Promise<void> {
  return rows.write('renewClaims', { lookups: batches.map(lookupOf), node, leaseMs: LEASE_MS })
}

/** Returns the lease of a batch. */
export async function releaseBatch({ rows, node }: LeaseServices, batch: LeasedBatch): Promise<void> {
  await rows.write('releaseClaim', { lookup: lookupOf(batch), userId: batch.userId, claim: node })
}

function lookupOf({ id }: LeasedBatch): string {
  return `batch ${id}`
}
