import type { Usage } from '../../domain/usage.ts'
import { generatedText } from './generated-text.ts'
import { asRecord, parseRecord } from './record.ts'
import { usageOf } from './usage.ts'

/** What a whole reply says about itself. */
export interface ReplyFacts {
  /** It is a JSON object with a `choices` array and no error. */
  readonly valid: boolean
  readonly usage: Usage | undefined
  /** It is an error object, whatever its status says. */
  readonly error: boolean
  /** The generated text of all choices, for counting. */
  text(): string
}

/**
 * Reads a whole reply's facts; never throws. It is parsed whole: native code does that in less time than it takes to
 * find the members that matter.
 */
export function usageOfReply(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const choices = reply['choices']
  const error = isError(reply['error'])
  return {
    valid: Array.isArray(choices) && !error,
    usage: usageOf(reply),
    error,
    text: () => textOf(choices),
  }
}

/** An `error` member that says something; some providers send null in each answer. */
export function isError(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}

function textOf(choices: unknown): string {
  if (!Array.isArray(choices)) return ''
  return choices.flatMap((choice) => generatedText(asRecord(choice)?.['message'])).join('\n')
}
