import type { Codec, ReplyIdentity } from '../codec.ts'
import { parseExactRecord } from '../json/exact-json.ts'
import type { ProtocolName } from '../protocols.ts'
import type { Reply } from '../reply.ts'
import { mergeAnswers } from './merge-answers.ts'
import { withRightTypes } from './value-types.ts'
import { withoutEnvelopes } from './without-envelopes.ts'

/** A whole answer, and whether it had faults that were mended. */
export interface RepairedAnswer {
  readonly bytes: Buffer
  readonly isRepaired: boolean
}

/** The codec of an answer's protocol, and the protocol's name. */
export interface ProtocolCodec {
  readonly codec: Codec
  readonly name: ProtocolName
}

/**
 * Lets a whole answer go through the codec of its protocol, and mends what has another type than the protocol defines.
 * Members that the codec does not know stay, and so do all digits of numbers. Returns the same bytes if there is nothing
 * to mend, or if the answer cannot be decoded.
 */
export function repairWhole(
  { codec, name }: ProtocolCodec,
  bytes: Buffer,
  identity: ReplyIdentity,
  choices = 1,
): RepairedAnswer {
  const given = parseExactRecord(bytes.toString())
  if (!given) return { bytes, isRepaired: false }
  const typed = withRightTypes(name, given)
  // Items have a status too, which they may lack.
  const hasNoEnd = typed['object'] === 'response' && typeof typed['status'] !== 'string'
  let isRepaired = typed !== given || hasNoEnd
  let written: Buffer
  try {
    const readable = isRepaired ? Buffer.from(JSON.stringify(typed)) : bytes
    written = codec.encodeReply(withoutPictures(codec.decodeReply(readable, choices)), identity)
  } catch {
    return { bytes, isRepaired: false }
  }
  const merged = mergeAnswers(typed, parseExactRecord(withoutEnvelopes(written.toString())) ?? {}, () => {
    isRepaired = true
  })
  return isRepaired ? { bytes: Buffer.from(JSON.stringify(merged)), isRepaired } : { bytes, isRepaired }
}

/** Pictures stay where the provider put them. */
function withoutPictures(reply: Reply): Reply {
  return { ...reply, parts: reply.parts.filter((part) => part.kind !== 'text' || part.withoutMedia !== '') }
}
