import { CONTENT_LEVELS } from '../domain/content-log.ts'
import type { CapturedCall } from './content-capture.ts'
import { CONTENT_PARTS, type ContentBytes } from './parts.ts'

/**
 * Many calls with their content in a few buffers, because sending an object for each call to the thread would
 * cost more time than all other work for the content log.
 */
export interface ContentBatch {
  /** Ids of the calls, with commas between them. */
  readonly ids: string
  /**
   * `COLUMNS` numbers for each call: user id, token id, start and retention in milliseconds, content level,
   * and the length of each part in bytes.
   */
  readonly numbers: Float64Array<ArrayBuffer>
  readonly bytes: Uint8Array<ArrayBuffer>
}

/**
 * A call in a batch. `lengths` are the sizes of its parts in bytes, in the order of `CONTENT_PARTS`; −1 for
 * an absent part.
 */
export interface BatchedCall extends CapturedCall {
  readonly lengths: readonly number[]
}

const FACTS = 5
const COLUMNS = FACTS + CONTENT_PARTS.length

/** Makes a batch of queued calls and their content. */
export function batchOf(
  queued: readonly { readonly call: CapturedCall; readonly content: ContentBytes }[],
): ContentBatch {
  const numbers = new Float64Array(queued.length * COLUMNS)
  let ids = ''
  let length = 0
  let at = 0
  for (const { call, content } of queued) {
    ids += ids === '' ? call.id : `,${call.id}`
    numbers[at] = call.userId
    numbers[at + 1] = call.tokenId
    numbers[at + 2] = call.startedMs
    numbers[at + 3] = call.keepMs
    numbers[at + 4] = CONTENT_LEVELS.indexOf(call.what)
    at += FACTS
    for (const part of CONTENT_PARTS) {
      const bytes = content[part]
      numbers[at] = bytes ? bytes.length : -1
      at += 1
      length += bytes?.length ?? 0
    }
  }
  const all = Buffer.allocUnsafeSlow(length)
  at = 0
  for (const { content } of queued)
    for (const part of CONTENT_PARTS) {
      const bytes = content[part]
      if (!bytes) continue
      all.set(bytes, at)
      at += bytes.length
    }
  return { ids, numbers, bytes: new Uint8Array(all.buffer) }
}

/** The calls of a batch. */
export function callsOf({ ids, numbers }: ContentBatch): BatchedCall[] {
  return ids.split(',').map((id, index) => {
    const [userId = 0, tokenId = 0, startedMs = 0, keepMs = 0, level = 0, ...lengths] = numbers.subarray(
      index * COLUMNS,
      (index + 1) * COLUMNS,
    )
    return {
      id,
      userId,
      tokenId,
      startedMs,
      keepMs,
      what: CONTENT_LEVELS[level] as BatchedCall['what'],
      lengths,
    }
  })
}
