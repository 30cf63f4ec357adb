import type { ReportedUsage } from './reported-usage.ts'
/** What a whole reply says about itself. */
export interface ReplyFacts {
  /** It is an answer of its protocol and no error. */
  readonly valid: boolean
  readonly usage: ReportedUsage | undefined
  /** It is an error object, whatever its status says. */
  readonly error: boolean
  /** The generated text, for counting. */
  text(): string
}

/** An `error` member that says something; some providers send null in each answer. */
export function isError(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}
