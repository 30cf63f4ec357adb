import { scanObject } from '../json-scan.ts'
import type { Usage } from '../../domain/usage.ts'
import { asRecord, generatedText } from './generated-text.ts'
import { usageOf } from './usage.ts'

/** What a whole reply says about itself. */
export interface ReplyFacts {
  /** It is a JSON object with a `choices` array and no error. */
  readonly valid: boolean
  readonly usage: Usage | undefined
  /** It is an error object, whatever its status says. */
  readonly error: boolean
  /** The generated text of all choices, for counting; parsed when asked for. */
  text(): string
}

type Part = 'usage' | 'x_groq' | 'error' | 'choices'

/** Replies hold log probabilities, a value for each byte of each token. */
const REPLY_LIMITS = { depth: 128, nodes: 1_000_000 }

const RUBBISH: ReplyFacts = { valid: false, usage: undefined, error: false, text: () => '' }

/**
 * Reads a whole reply's facts; never throws. Only the members that hold them are parsed, where the reply is one that
 * can be read by position.
 */
export function usageOfReply(bytes: Buffer): ReplyFacts {
  const part = reader(bytes)
  if (!part) return RUBBISH
  const error = isError(part('error'))
  const usage = usageOf({ usage: part('usage'), x_groq: part('x_groq') })
  const text = (): string => textOf(part('choices'))
  if (usage) return { valid: !error && part.holdsArray('choices'), usage, error, text }
  const choices = part('choices')
  return { valid: !error && Array.isArray(choices), usage: usageOf({ choices }), error, text }
}

/** An `error` member that says something; some providers send null in each answer. */
export function isError(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}

function textOf(choices: unknown): string {
  if (!Array.isArray(choices)) return ''
  return choices.flatMap((choice) => generatedText(asRecord(choice)?.['message'])).join('\n')
}

interface Reader {
  (part: Part): unknown
  holdsArray(part: Part): boolean
}

function reader(bytes: Buffer): Reader | undefined {
  try {
    const scan = scanObject(bytes, REPLY_LIMITS)
    return Object.assign((part: Part) => scan.value(part), {
      holdsArray: (part: Part) => scan.kind(part) === 'array',
    })
  } catch {
    return parsedReader(bytes)
  }
}

/** For what an upstream may send and a caller may not: a key twice, very many values. */
function parsedReader(bytes: Buffer): Reader | undefined {
  try {
    const reply = asRecord(JSON.parse(bytes.toString()))
    return (
      reply &&
      Object.assign((part: Part) => reply[part], { holdsArray: (part: Part) => Array.isArray(reply[part]) })
    )
  } catch {
    return undefined
  }
}
