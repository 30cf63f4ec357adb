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

export type LeasedBatch = Pick<Batch, 'id' | 'userId'>

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

/** Renews leases of this node. Resolves to the batches that other nodes have taken over. */
export async function renewBatches<One extends LeasedBatch>(
  { rows, node }: LeaseServices,
  batches: readonly One[],
): Promise<One[]> {
  const lookups = batches.map(lookupOf)
  const renewed = new Set(await rows.write('renewClaims', { lookups, node, leaseMs: LEASE_MS }))
  return batches.filter((batch) => !renewed.has(lookupOf(batch)))
}

/** Renews the lease of a batch. Throws if another node has taken the batch over, and may have ended it. */
export async function keepBatch(services: LeaseServices, batch: LeasedBatch): Promise<void> {
  const [lost] = await renewBatches(services, [batch])
  if (lost) throw new Error(`another node has taken the batch ${lost.id} over`)
}

/** Returns the lease of a batch. */
export async function releaseBatch({ rows, node }: LeaseServices, batch: LeasedBatch): Promise<void> {
  await rows.write('releaseClaim', { lookup: lookupOf(batch), userId: batch.userId, claim: node })
}

function lookupOf({ id }: LeasedBatch): string {
  return `batch ${id}`
}
