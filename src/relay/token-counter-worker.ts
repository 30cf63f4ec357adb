import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parentPort } from 'node:worker_threads'
import { O200K_TOKEN_SPLIT_REGEX } from 'gpt-tokenizer/encodingParams/constants'
import type { CountedText } from './token-counter.ts'
import { PieceCounts, Vocabulary } from './vocabulary.ts'

const FILE = createRequire(import.meta.url).resolve('gpt-tokenizer/data/o200k_base.tiktoken')
const vocabulary = new Vocabulary(readFileSync(FILE), O200K_TOKEN_SPLIT_REGEX)
const counts = new PieceCounts((piece) => vocabulary.count(piece))

parentPort?.on('message', (texts: readonly CountedText[]) => parentPort?.postMessage(texts.map(tokensOf)))

/** Estimates the tokens of a text from those of its pieces. */
function tokensOf({ pieces, factor }: CountedText): number {
  const tokens = pieces.reduce((sum, piece) => sum + counts.tokensOf(piece), 0)
  return Math.ceil(tokens * factor)
}
