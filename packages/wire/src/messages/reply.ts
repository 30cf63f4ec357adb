import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { generatedText } from './generated-text.ts'
import { usesIn } from './tool-blocks.ts'
import { readMessagesUsage } from './usage.ts'

/** Reads the facts of a whole reply; never throws. */
export function usageOfMessage(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const content = reply['content']
  const tools = usesIn(content)
  const error = reply['type'] === 'error' || isError(reply['error'])
  return {
    valid: Array.isArray(content) && !error,
    usage: readMessagesUsage(reply['usage'], tools),
    tools,
    error,
    text: () =>
      Array.isArray(content) ? content.flatMap((block) => generatedText(asRecord(block))).join('\n') : '',
  }
}
