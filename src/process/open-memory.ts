import { RequestMemory } from '../limits/request-memory.ts'
import { StoreReads } from '../limits/store-reads.ts'
import { BodyReader } from '../relay/body-reader.ts'
import { Spool } from '../relay/spool.ts'

/** Readers of bodies and of the store that share one memory; large forms are in `folder`. */
export function openMemory(
  folder: string,
  bodyLimit: () => number,
  nowMs: () => number,
): { readonly bodies: BodyReader; readonly reads: StoreReads } {
  const memory = new RequestMemory(bodyLimit, nowMs)
  const bodies = new BodyReader(memory, new Spool(folder, bodyLimit, nowMs))
  return { bodies, reads: new StoreReads(memory) }
}
