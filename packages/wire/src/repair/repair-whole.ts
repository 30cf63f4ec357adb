import type { Codec, ReplyIdentity } from '../codec.ts'
import { parseRecord } from '../json/record.ts'
import { mergeAnswers } from './merge-answers.ts'

/** A whole answer, and whether it had faults that were mended. */
export interface RepairedAnswer {
  readonly bytes: Buffer
  readonly isRepaired: boolean
}

/**
 * Lets a whole answer go through the codec of its protocol, and mends what has another type than the codec writes.
 * Members that the codec does not know stay. Returns the same bytes if there is nothing to mend, or if the answer
 * cannot be decoded.
 */
export function repairWhole(
  codec: Codec,
  bytes: Buffer,
  identity: ReplyIdentity,
  choices = 1,
): RepairedAnswer {
  const given = parseRecord(bytes.toString())
  if (!given) return { bytes, isRepaired: false }
  let written: Buffer
  try {
    written = codec.encodeReply(codec.decodeReply(bytes, choices), identity)
  } catch {
    return { bytes, isRepaired: false }
  }
  let isRepaired = false
  const merged = mergeAnswers(given, parseRecord(written.toString()) ?? {}, () => {
    isRepaired = true
  })
  return isRepaired ? { bytes: Buffer.from(JSON.stringify(merged)), isRepaired } : { bytes, isRepaired }
}
