import { generatedText, textMessage } from './generated-text.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { isError } from '../reply-facts.ts'
import { citesPage } from './cited-pages.ts'
import { usageOf } from './usage.ts'
import type { ReportedUsage } from '../reported-usage.ts'

/** Content of one choice of a chunk. */
export interface ChunkChoice {
  readonly index: number
  /** Generated text, in non-empty pieces. */
  readonly pieces: readonly string[]
  readonly finished: boolean
  /** Whether it cites a page of the web. */
  readonly cites: boolean
}

/** Facts about a chunk of a chat stream. */
export interface ChunkFacts {
  /** Parsed chunk. */
  readonly chunk: Readonly<Record<string, unknown>>
  readonly choices: readonly ChunkChoice[]
  /** Deltas of the choices, or their messages. */
  readonly deltas: readonly (Record<string, unknown> | undefined)[]
  /** Usage, which an error may contain or have beside it. */
  readonly usage: ReportedUsage | undefined
  /** Whether `usage` is an object where clients look for it, credible or not. */
  readonly hasUsageObject: boolean
  /** Whether `choices` is empty and `usage` an object: the chunk that `include_usage` asks for. */
  readonly isUsageChunk: boolean
  readonly isError: boolean
}

const MAX_CHOICES = 128

/** Reads a chunk's data; undefined if it is not a JSON object. */
export function readChunk(data: string): ChunkFacts | undefined {
  const chunk = parseRecord(data)
  if (!chunk) return undefined
  const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : undefined
  const tellsUsage = asRecord(chunk['usage']) !== undefined
  return {
    chunk,
    choices: (choices ?? []).map(readChoice),
    deltas: (choices ?? []).map(deltaOf),
    usage: usageOf(chunk),
    hasUsageObject: tellsUsage,
    isUsageChunk: choices?.length === 0 && tellsUsage,
    isError: isError(chunk['error']) || chunk['object'] === 'error',
  }
}

function deltaOf(value: unknown): Record<string, unknown> | undefined {
  const choice = asRecord(value)
  return asRecord(choice?.['delta']) ?? asRecord(choice?.['message'])
}

function readChoice(value: unknown): ChunkChoice {
  const choice = asRecord(value)
  const index = choice?.['index']
  return {
    index:
      Number.isInteger(index) && (index as number) >= 0 && (index as number) < MAX_CHOICES
        ? (index as number)
        : 0,
    pieces: generatedText(choice?.['delta'] ?? textMessage(choice)),
    cites: citesPage(choice?.['delta'] ?? choice?.['message']),
    finished: typeof choice?.['finish_reason'] === 'string' && choice['finish_reason'] !== '',
  }
}
