import { RequestMemory } from '../limits/request-memory.ts'
import { StoreReads } from '../limits/store-reads.ts'
import { BodyReader } from '../relay/body-reader.ts'
import { Spool } from '../relay/spool.ts'

/** The memory for requests, and the readers of bodies and of the store; large forms are in `folder`. */
export function openMemory(
  folder: string,
  bodyLimit: () => number,
  nowMs: () => number,
): { readonly memory: RequestMemory; readonly bodies: BodyReader; readonly reads: StoreReads } {
  const memory = new RequestMemory(bodyLimit, nowMs)
  const bodies = new BodyReader(memory, new Spool(folder, bodyLimit, nowMs))
  return { memory, bodies, reads: new StoreReads(memory) }
}
