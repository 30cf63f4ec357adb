import type { StoreRead } from '../limits/store-reads.ts'
import { isSizedRead } from '../store/sized-reads.ts'
import type { ManagementServices } from './services.ts'

const KIB = 1024
/**
 * Maximum bytes that a read which returns or scans many rows may return; if its texts are measured, bytes that are counted
 * at least. All other reads return few rows.
 */
const BOUNDS: ReadonlyMap<string, number> = new Map([
  ['callFacts', 1024 * KIB],
  ['scanUsage', 2048 * KIB],
  ['listUsage', 128 * KIB],
  ['ownTokenKeys', 256 * KIB],
  ['ownTokenNames', 128 * KIB],
  ['failedCalls', 512 * KIB],
  ['findKeys', 256 * KIB],
  ['listRefusedCalls', 256 * KIB],
  ['modelCallers', 512 * KIB],
  ['priceSets', 1024 * KIB],
  ['refusedCalls', 256 * KIB],
  ['sessionSums', 256 * KIB],
  ['usageByDay', 256 * KIB],
  ['usageGroups', 256 * KIB],
  ['usageSeries', 512 * KIB],
  ['usageValues', 512 * KIB],
])
const FEW_ROWS = 16 * KIB
/**
 * Number of copies of a result that exist in memory at the same time: rows, the message with them, objects
 * made of them, the response as text and as bytes, and about as much garbage.
 */
const COPIES = 6

/**
 * Wraps the database for one request of a user: the user's reads take turns, and each read needs memory from
 * the client's share. A read that is repeated, as in an export, reuses the memory of the previous one.
 * `endReads` gives turn and memory back; the next read begins anew.
 */
export function storeWithReadLimits(
  store: ManagementServices['store'],
  reading: StoreRead,
): { readonly store: ManagementServices['store']; readonly endReads: () => void } {
  /** Bytes of memory that are held, by the name of the read. */
  const held = new Map<string, number>()
  const hold = async (name: string, bytes: number): Promise<void> => {
    const more = bytes * COPIES - (held.get(name) ?? 0)
    if (more <= 0) return
    held.set(name, bytes * COPIES)
    await reading.hold(more)
  }
  const metered: ManagementServices['store'] = {
    async read(name, ...input) {
      await reading.begin()
      const bound = BOUNDS.get(name) ?? 0
      const texts = isSizedRead(name) ? await store.read('readBytes', { name, input: input[0] }) : 0
      await hold(name, FEW_ROWS + Math.max(bound, texts))
      return store.read(name, ...input)
    },
    write: (name, ...input) => store.write(name, ...input),
  }
  const endReads = (): void => {
    held.clear()
    reading.pause()
  }
  return { store: metered, endReads }
}
