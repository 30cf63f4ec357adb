import { readInclusiveUsage } from '../inclusive-usage.ts'
import { parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'

/** Reads the facts of a response; never throws. A response is valid if it has a list of results. */
export function readModerationsReply(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const error = isError(reply['error'])
  const usage = readInclusiveUsage(reply['usage'])
  return {
    valid: Array.isArray(reply['results']) && !error,
    usage: usage?.outputIsUnknown ? undefined : usage,
    error,
    text: () => '',
  }
}
