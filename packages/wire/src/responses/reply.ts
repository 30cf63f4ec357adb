import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { encryptedIn } from './encrypted-content.ts'
import { generatedText } from './generated-text.ts'
import { inItems, itemIdIn } from './item-texts.ts'
import { toolsOf, usageOf } from './usage.ts'

/** Facts that a whole response reports about itself. */
export interface ResponseFacts extends ReplyFacts {
  /** The upstream's id of the response; '' if it has none. */
  readonly id: string
  /** The upstream's id of the response that it continues; '' if there is none. */
  readonly previousId: string
  /** `completed`, `queued` etc.; undefined if it is missing. */
  readonly status: string | undefined
  /** Encrypted contents of its items, which only the account that created them can read. */
  readonly encrypted: readonly string[]
  /** Ids of its items. */
  readonly itemIds: readonly string[]
}

/**
 * Reads the facts of a compaction. No text is counted, because a compaction repeats messages of the request
 * and is otherwise encrypted.
 */
export function usageOfCompaction(bytes: Buffer): ResponseFacts {
  return { ...usageOfResponse(bytes), text: () => '' }
}

/**
 * Reads the facts of a whole response; never throws. A failed response is an error, whatever its HTTP status.
 */
export function usageOfResponse(bytes: Buffer): ResponseFacts {
  const response = parseRecord(bytes.toString()) ?? {}
  const { id, previous_response_id: previousId, status, output } = response
  const error = isError(response['error']) || status === 'failed'
  return {
    id: typeof id === 'string' ? id : '',
    previousId: typeof previousId === 'string' ? previousId : '',
    status: typeof status === 'string' ? status : undefined,
    encrypted: inItems(output, encryptedIn),
    itemIds: inItems(output, itemIdIn),
    valid: Array.isArray(output) && !error,
    usage: usageOf(response),
    tools: toolsOf(response),
    error,
    text: () =>
      Array.isArray(output) ? output.flatMap((item) => generatedText(asRecord(item))).join('\n') : '',
  }
}
