import { RequestMemory } from '../limits/request-memory.ts'
import { StoreReads } from '../limits/store-reads.ts'
import { BodyReader } from '../call/body-reader.ts'
import { Spool } from '../call/spool.ts'
import { HeapCollector, youngCollector } from './heap-collector.ts'

/**
 * Creates the memory limit for requests, the reader of request bodies, and the limit for database reads.
 * Large form bodies are stored in `folder`.
 */
export function openRequestMemory(
  folder: string,
  bodyLimit: () => number,
  nowMs: () => number,
): { readonly memory: RequestMemory; readonly bodies: BodyReader; readonly reads: StoreReads } {
  const garbage = new HeapCollector()
  const note = (bytes: number): void => garbage.note(bytes)
  const passed = youngCollector()
  const memory = new RequestMemory(bodyLimit, nowMs, note, (bytes) => passed.note(bytes))
  const bodies = new BodyReader(memory, new Spool(folder, bodyLimit, nowMs, note))
  return { memory, bodies, reads: new StoreReads(memory) }
}
