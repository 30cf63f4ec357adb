import { ResizableAllocation, RequestMemory } from '../../src/limits/request-memory.ts'

const MIB = 1024 * 1024

/** Memory for requests of a gateway without other calls. */
export function requestMemory(): RequestMemory {
  return new RequestMemory(
    () => 32 * MIB,
    () => 0,
  )
}

/** The amount of this memory that one client holds. */
export function heldBytes(memory = requestMemory(), client = 1): ResizableAllocation {
  return new ResizableAllocation(memory, { client, key: '' })
}

/** Takes all that a client may have, to the byte; the returned function releases it. */
export function usedUp(memory: RequestMemory, client = 1): () => void {
  const held: ResizableAllocation[] = []
  for (const bytes of [MIB, 256 * 1024, 4_096, 64, 1])
    for (let one = heldBytes(memory, client); one.take(bytes); one = heldBytes(memory, client)) held.push(one)
  return () => {
    for (const one of held) one.release()
  }
}
